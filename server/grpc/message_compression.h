// Decompresses a message within bounds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "server/core/byte_pieces.h"
#include "server/grpc/message_encoding.h"
#include "server/grpc/message_memory.h"

// zlib's z_stream, declared here to keep zlib out of this header.
struct z_stream_s;

namespace saccade::server {

class MessageInflater {
 public:
  struct Bounds {
    int64_t max_message_bytes;
    // See GrpcHandler::Options.
    int64_t max_ratio;
    int64_t max_growth_bytes;
    // Whether max_message_bytes is the method's own bound, which no flag changes.
    bool is_of_method = false;
  };

  // REQUIRES: `encoding` is not kIdentity. `compressed` keeps its bytes.
  MessageInflater(MessageEncoding encoding, BytePieces compressed, const Bounds& bounds,
                  MessageAccount account);
  ~MessageInflater();

  // Reads at most kStepInputBytes and writes about `max` bytes at most, so that the other calls of the loop
  // get their turn between two steps. The memory is charged before it is allocated. INTERNAL for data that is
  // not the encoding's, RESOURCE_EXHAUSTED beyond the bounds or by the ledger. REQUIRES: not done, and no
  // earlier step has failed.
  std::optional<MessageFailure> Step(size_t max = kStepBytes);
  static constexpr size_t kStepBytes = size_t{1} << 20;
  // Empty blocks take input and produce no output, so the input is bounded too.
  static constexpr size_t kStepInputBytes = size_t{64} << 10;

  bool done() const { return done_; }
  // The message, with its compressed_size(). REQUIRES: done.
  BytePieces Take();

 private:
  struct StreamDeleter {
    void operator()(z_stream_s* stream) const;
  };
  struct Chunk {
    MessageMemory memory;
    size_t capacity = 0;
    size_t size = 0;
  };

  std::optional<MessageFailure> Start();
  std::optional<MessageFailure> AddChunk();
  std::optional<MessageFailure> Inflate(char* to, size_t room, size_t* written);
  std::optional<MessageFailure> CheckBound();
  // Whether this step may read on.
  bool HasInput() const;

  const MessageEncoding encoding_;
  const BytePieces compressed_;
  PieceReader rest_;
  const Bounds bounds_;
  // The most bytes that the message may have.
  const uint64_t max_bytes_;
  const MessageAccount account_;
  // For zlib's window and tables.
  ByteCharge state_charge_;
  std::unique_ptr<z_stream_s, StreamDeleter> stream_;
  std::vector<Chunk> chunks_;
  uint64_t size_ = 0;
  // Bytes that this step may still take from `rest_`.
  size_t step_input_ = 0;
  bool done_ = false;
};

}  // namespace saccade::server
