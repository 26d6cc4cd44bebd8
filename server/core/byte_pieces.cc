#include "server/core/byte_pieces.h"

#include <cstring>

namespace saccade::server {

void BytePieces::Add(std::string_view piece) {
  if (piece.empty()) return;
  // A piece that begins where the previous one ends extends it.
  if (!pieces_.empty() && pieces_.back().data() + pieces_.back().size() == piece.data()) {
    pieces_.back() = {pieces_.back().data(), pieces_.back().size() + piece.size()};
  } else {
    pieces_.push_back(piece);
  }
  size_ += piece.size();
}

void BytePieces::CopyTo(char* to) const {
  for (const std::string_view piece : pieces_) {
    std::memcpy(to, piece.data(), piece.size());
    to += piece.size();
  }
}

void PieceReader::NextPiece() {
  while (piece_.empty() && !pieces_.empty()) {
    piece_ = pieces_.front();
    pieces_.remove_prefix(1);
  }
}

std::string_view PieceReader::Next(size_t max) {
  const std::string_view next = piece_.substr(0, max);
  piece_.remove_prefix(next.size());
  NextPiece();
  return next;
}

bool PieceReader::Take(size_t size, BytePieces& to) {
  while (size > 0 && !done()) {
    const std::string_view next = Next(size);
    to.Add(next);
    size -= next.size();
  }
  return size == 0;
}

void PieceReader::Read(size_t size, char* to) {
  while (size > 0) {
    const std::string_view next = Next(size);
    std::memcpy(to, next.data(), next.size());
    to += next.size();
    size -= next.size();
  }
}

}  // namespace saccade::server
