#include "server/net/output.h"

#include <algorithm>
#include <utility>

namespace saccade::server {
namespace {

// Smaller pieces are copied: that costs less than their own entry in a system call.
constexpr size_t kMinReferred = size_t{4} << 10;
// Copied bytes are collected in chunks of this size.
constexpr size_t kChunk = size_t{16} << 10;
// A chunk begins with room for the answer of a small call: head, message and trailers.
constexpr size_t kFirstRoom = 512;

}  // namespace

void Output::Copy(std::string_view bytes) {
  if (bytes.empty()) return;
  const bool fits = !parts_.empty() && parts_.back().owner == nullptr &&
                    parts_.back().copied.size() + bytes.size() <= kChunk;
  // Nothing is counted if this throws; an empty part does no harm.
  if (!fits) {
    parts_.push_back({});
    parts_.back().copied.reserve(std::max(bytes.size(), kFirstRoom));
  }
  parts_.back().copied.append(bytes);
  size_ += bytes.size();
  appended_ += bytes.size();
}

void Output::Add(BytePieces bytes) {
  // Made for the first large piece. Its pieces are those of `bytes`.
  std::shared_ptr<const BytePieces> kept;
  for (const std::string_view piece : bytes.pieces()) {
    if (piece.size() < kMinReferred) {
      Copy(piece);
      continue;
    }
    if (kept == nullptr) kept = std::make_shared<const BytePieces>(bytes);
    parts_.push_back({{}, piece, kept});
    size_ += piece.size();
    appended_ += piece.size();
  }
}

void Output::OnWritten(absl::AnyInvocable<void() &&> action) {
  if (empty()) {
    std::move(action)();
  } else {
    marks_.push_back({appended_, std::move(action)});
  }
}

size_t Output::Peek(absl::Span<iovec> to) const {
  size_t filled = 0;
  for (size_t i = 0; i < parts_.size() && filled < to.size(); ++i) {
    const std::string_view bytes = parts_[i].bytes().substr(i == 0 ? skipped_ : 0);
    if (bytes.empty()) continue;
    to[filled++] = {const_cast<char*>(bytes.data()), bytes.size()};
  }
  return filled;
}

void Output::Consume(size_t bytes) {
  size_ -= bytes;
  consumed_ += bytes;
  skipped_ += bytes;
  while (!parts_.empty() && skipped_ >= parts_.front().bytes().size()) {
    skipped_ -= parts_.front().bytes().size();
    parts_.pop_front();
  }
  while (!marks_.empty() && marks_.front().position <= consumed_) {
    auto action = std::move(marks_.front().action);
    marks_.pop_front();
    std::move(action)();
  }
}

void Output::Clear() {
  consumed_ = appended_;
  size_ = skipped_ = 0;
  // The members are empty when what they held is destroyed.
  const Queue<Part> parts = std::exchange(parts_, {});
  const Queue<Mark> marks = std::exchange(marks_, {});
}

}  // namespace saccade::server
