// The bytes of a response's body that wait to be sent.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "absl/container/inlined_vector.h"
#include "server/core/byte_pieces.h"
#include "server/net/output.h"

namespace saccade::server {

// Allocates nothing while one message waits that is sent as a whole, as most are.
class BodyQueue {
 public:
  // Number of bytes that wait.
  size_t size() const { return size_; }
  void Add(BytePieces message);
  // Moves the first `size` bytes to `output`. REQUIRES: as many wait.
  void MoveTo(Output& output, size_t size);
  void Clear();

 private:
  // The front, when a part of it was moved.
  struct Split {
    std::shared_ptr<const BytePieces> whole;
    PieceReader rest;
    // Bytes of `rest`.
    size_t left;
  };

  void PopFront();

  absl::InlinedVector<BytePieces, 1> messages_;
  // Index of the front; the messages before it are empty.
  size_t first_ = 0;
  size_t size_ = 0;
  std::optional<Split> split_;
};

}  // namespace saccade::server
