// Bytes as a network delivered them: in pieces that follow each other, wherever each lies.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace saccade::server {

// Points at the pieces; `owner` keeps them alive, or, if there is none, whoever made it.
class BytePieces {
 public:
  BytePieces() = default;
  explicit BytePieces(std::string_view whole, std::shared_ptr<const void> owner = nullptr)
      : owner_(std::move(owner)) {
    Add(whole);
  }
  // Floats that somebody else owns, as they lie in memory.
  BytePieces(absl::Span<const float> floats)  // NOLINT(google-explicit-constructor): they are nothing else
      : BytePieces({reinterpret_cast<const char*>(floats.data()), floats.size() * sizeof(float)}) {}

  // Behind the others; one that is empty is none.
  void Add(std::string_view piece);

  // Of all together.
  size_t size() const { return size_; }
  absl::Span<const std::string_view> pieces() const { return pieces_; }
  void CopyTo(char* to) const;
  // The same pieces, which `owner` keeps alive.
  BytePieces KeptBy(std::shared_ptr<const void> owner) const {
    BytePieces kept = *this;
    kept.owner_ = std::move(owner);
    return kept;
  }

 private:
  std::shared_ptr<const void> owner_;
  std::vector<std::string_view> pieces_;
  size_t size_ = 0;
};

// Reads pieces from front to back. They must outlive it.
class PieceReader {
 public:
  explicit PieceReader(absl::Span<const std::string_view> pieces) : pieces_(pieces) { NextPiece(); }
  explicit PieceReader(const BytePieces& bytes) : PieceReader(bytes.pieces()) {}

  bool done() const { return piece_.empty(); }
  // What of the next `most` bytes lies in one piece, and is then behind the reader; empty at the end.
  std::string_view Next(size_t most);
  // The next `size` bytes go to the end of `to`. False if there are fewer: all of them went there.
  bool Take(size_t size, BytePieces& to);
  // REQUIRES: there are so many.
  void Read(size_t size, char* to);

 private:
  void NextPiece();

  absl::Span<const std::string_view> pieces_;
  std::string_view piece_;  // what is left of the one at hand
};

}  // namespace saccade::server
