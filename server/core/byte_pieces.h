// A byte sequence in several non-contiguous pieces, as the network delivered it.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace saccade::server {

// Points at the pieces without copying them. `owner` keeps their memory alive; if it is null, the caller
// does.
class BytePieces {
 public:
  BytePieces() = default;
  explicit BytePieces(std::string_view whole, std::shared_ptr<const void> owner = nullptr)
      : owner_(std::move(owner)) {
    Add(whole);
  }
  // Refers to the bytes of `floats`, which must outlive this object.
  BytePieces(absl::Span<const float> floats)  // NOLINT(google-explicit-constructor): they are nothing else
      : BytePieces({reinterpret_cast<const char*>(floats.data()), floats.size() * sizeof(float)}) {}

  // Appends a piece; ignores an empty one.
  void Add(std::string_view piece);

  // Total number of bytes.
  size_t size() const { return size_; }
  absl::Span<const std::string_view> pieces() const { return pieces_; }
  // Number of bytes that were sent for these, if they came compressed. Copies have it too.
  std::optional<size_t> compressed_size() const { return compressed_size_; }
  void set_compressed_size(std::optional<size_t> size) { compressed_size_ = size; }
  void CopyTo(char* to) const;
  // Returns the same pieces, kept alive by `owner` instead.
  BytePieces KeptBy(std::shared_ptr<const void> owner) const {
    BytePieces kept = *this;
    kept.owner_ = std::move(owner);
    return kept;
  }

 private:
  std::shared_ptr<const void> owner_;
  std::vector<std::string_view> pieces_;
  size_t size_ = 0;
  std::optional<size_t> compressed_size_;
};

// Reads pieces from front to back. The memory of the pieces must outlive the reader.
class PieceReader {
 public:
  explicit PieceReader(absl::Span<const std::string_view> pieces) : pieces_(pieces) { NextPiece(); }
  explicit PieceReader(const BytePieces& bytes) : PieceReader(bytes.pieces()) {}

  bool done() const { return piece_.empty(); }
  // Returns at most `max` bytes from the current piece and advances past them. Empty only at the end.
  std::string_view Next(size_t max);
  // Appends the next `size` bytes to `to` without copying them. If fewer are left, appends those and returns
  // false.
  bool Take(size_t size, BytePieces& to);
  // Copies the next `size` bytes. REQUIRES: at least `size` bytes are left.
  void Read(size_t size, char* to);

 private:
  void NextPiece();

  absl::Span<const std::string_view> pieces_;
  std::string_view piece_;  // unread rest of the current piece
};

}  // namespace saccade::server
