#include "server/grpc/message_compression.h"

#include <zlib.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/core/retry_hint.h"

namespace saccade::server {
namespace {

// zlib's documentation: 32 KiB of window, and about 7 KiB of tables.
constexpr size_t kStateBytes = size_t{48} << 10;
constexpr size_t kFirstChunkBytes = size_t{4} << 10;

MessageFailure Malformed(absl::string_view what) {
  return {absl::InternalError(absl::StrCat("a message cannot be decompressed: ", what,
                                           "; send it as grpc-encoding says, or uncompressed")),
          Refusal::kMalformed};
}

uint64_t MaxBytes(size_t compressed, const MessageInflater::Bounds& bounds) {
  const uint64_t by_ratio = compressed * static_cast<uint64_t>(bounds.max_ratio);
  const uint64_t by_growth = std::max(by_ratio, static_cast<uint64_t>(bounds.max_growth_bytes));
  return std::min(by_growth, static_cast<uint64_t>(bounds.max_message_bytes));
}

}  // namespace

void MessageInflater::StreamDeleter::operator()(z_stream_s* stream) const {
  inflateEnd(stream);
  delete stream;
}

MessageInflater::MessageInflater(MessageEncoding encoding, BytePieces compressed, const Bounds& bounds,
                                 MessageAccount account)
    : encoding_(encoding),
      compressed_(std::move(compressed)),
      rest_(compressed_),
      bounds_(bounds),
      max_bytes_(MaxBytes(compressed_.size(), bounds)),
      account_(std::move(account)) {}

MessageInflater::~MessageInflater() = default;

std::optional<MessageFailure> MessageInflater::Start() {
  auto charge = account_.Charge(kStateBytes);
  if (!charge.ok()) return MessageFailure{charge.status(), Refusal::kBytes};
  state_charge_ = *std::move(charge);
  auto stream = std::make_unique<z_stream>();
  // Adding 16 asks for gzip's header; without it, for zlib's, which HTTP and gRPC call deflate.
  const int window = encoding_ == MessageEncoding::kGzip ? MAX_WBITS + 16 : MAX_WBITS;
  if (inflateInit2(stream.get(), window) != Z_OK) {
    return MessageFailure{OutOfMemory("the server has no memory to decompress a message; try again later"),
                          Refusal::kBytes};
  }
  stream_.reset(stream.release());
  return std::nullopt;
}

std::optional<MessageFailure> MessageInflater::Step(size_t max) {
  if (stream_ == nullptr) {
    if (auto failure = Start()) return failure;
  }
  step_input_ = kStepInputBytes;
  uint64_t produced = 0;
  while (!done_ && produced < max && HasInput()) {
    if (chunks_.empty() || chunks_.back().size == chunks_.back().capacity) {
      if (size_ == max_bytes_) return CheckBound();
      if (auto failure = AddChunk()) return failure;
    }
    Chunk& chunk = chunks_.back();
    size_t written = 0;
    auto failure = Inflate(chunk.memory.bytes.get() + chunk.size, chunk.capacity - chunk.size, &written);
    if (failure) return failure;
    chunk.size += written;
    size_ += written;
    produced += written;
  }
  return std::nullopt;
}

std::optional<MessageFailure> MessageInflater::AddChunk() {
  // As much again as there is, so that a small message takes little and a large one few pieces.
  const uint64_t wanted = std::clamp<uint64_t>(size_, kFirstChunkBytes, kStepBytes);
  Chunk chunk;
  chunk.capacity = static_cast<size_t>(std::min(wanted, max_bytes_ - size_));
  if (auto failure = chunk.memory.Allocate(account_, chunk.capacity)) return failure;
  chunks_.push_back(std::move(chunk));
  return std::nullopt;
}

bool MessageInflater::HasInput() const { return step_input_ > 0 || stream_->avail_in > 0; }

// Inflates until `room` bytes are written, the data ends, or the step has read all that it may.
std::optional<MessageFailure> MessageInflater::Inflate(char* to, size_t room, size_t* written) {
  stream_->next_out = reinterpret_cast<Bytef*>(to);
  stream_->avail_out = static_cast<uInt>(room);
  while (stream_->avail_out > 0 && !done_ && HasInput()) {
    if (stream_->avail_in == 0) {
      const std::string_view next = rest_.Next(step_input_);
      step_input_ -= next.size();
      stream_->next_in = reinterpret_cast<Bytef*>(const_cast<char*>(next.data()));
      stream_->avail_in = static_cast<uInt>(next.size());
      if (next.empty()) return Malformed("its compressed data ends too early");
    }
    const int result = inflate(stream_.get(), Z_NO_FLUSH);
    if (result == Z_STREAM_END) {
      done_ = true;
    } else if (result == Z_MEM_ERROR) {
      return MessageFailure{OutOfMemory("the server has no memory to decompress a message; try again later"),
                            Refusal::kBytes};
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      return Malformed("its data is damaged or not of that encoding");
    }
  }
  *written = room - stream_->avail_out;
  if (done_ && (stream_->avail_in > 0 || !rest_.done())) {
    return Malformed("bytes follow the end of its compressed data");
  }
  return std::nullopt;
}

// The message has as many bytes as it may have: only the end of its compressed data may follow.
std::optional<MessageFailure> MessageInflater::CheckBound() {
  char beyond;
  size_t written = 0;
  if (auto failure = Inflate(&beyond, 1, &written)) return failure;
  if (written == 0) return std::nullopt;
  if (max_bytes_ == static_cast<uint64_t>(bounds_.max_message_bytes)) {
    return MessageFailure{
        absl::ResourceExhaustedError(
            absl::StrCat("a message has more than ", max_bytes_, " bytes when decompressed, which is ",
                         bounds_.is_of_method ? "this method's bound" : "the server's --max-message-bytes",
                         "; send smaller messages")),
        Refusal::kDecompressedTooLarge};
  }
  return MessageFailure{absl::ResourceExhaustedError(
                            absl::StrCat("a message of ", compressed_.size(), " bytes grows to more than ",
                                         max_bytes_, " bytes when decompressed; send it uncompressed")),
                        Refusal::kDecompressedTooLarge};
}

BytePieces MessageInflater::Take() {
  struct Memory {
    std::vector<Chunk> chunks;
  };
  stream_.reset();
  state_charge_.Release();
  auto memory = std::make_shared<Memory>(Memory{std::move(chunks_)});
  BytePieces message({}, memory);
  message.set_compressed_size(compressed_.size());
  for (const Chunk& chunk : memory->chunks) {
    message.Add({chunk.memory.bytes.get(), chunk.size});
  }
  return message;
}

}  // namespace saccade::server
