// Bytes that wait to be written to a connection.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/types/span.h"
#include "server/core/byte_pieces.h"

namespace saccade::server {

// Small pieces are copied together; large ones are referred to. Loop's thread only.
class Output {
 public:
  Output() = default;
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  // Appends a copy.
  void Copy(std::string_view bytes);
  // Appends the bytes without copying large pieces. Their owner is released when they have been written.
  void Add(BytePieces bytes);
  // Runs `action` when everything appended so far has been written; at once if nothing waits. If the
  // connection is lost before that, the action is destroyed without being run.
  void OnWritten(absl::AnyInvocable<void() &&> action);

  // Number of bytes that wait.
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  // Points `to` at the first bytes that wait, and returns how many entries of `to` were filled.
  size_t Peek(absl::Span<iovec> to) const;
  // Removes the first `bytes`, which have been written. Runs the actions that are due; they may append.
  void Consume(size_t bytes);
  // Drops the bytes that wait, and the actions without running them.
  void Clear();

 private:
  // Either a chunk of copied bytes or a referred piece.
  struct Part {
    std::string copied;
    std::string_view referred;
    std::shared_ptr<const BytePieces> owner;
    std::string_view bytes() const { return owner == nullptr ? std::string_view(copied) : referred; }
  };
  struct Mark {
    uint64_t position;
    absl::AnyInvocable<void() &&> action;
  };
  // A queue that uses no memory while it is empty: most connections are idle.
  template <typename T>
  class Queue {
   public:
    bool empty() const { return first_ == items_.size(); }
    size_t size() const { return items_.size() - first_; }
    T& front() { return items_[first_]; }
    T& back() { return items_.back(); }
    const T& operator[](size_t i) const { return items_[first_ + i]; }
    void push_back(T item) { items_.push_back(std::move(item)); }
    void pop_front() {
      items_[first_++] = T();
      if (empty()) {
        items_ = std::vector<T>();
        first_ = 0;
      } else if (first_ >= kCompactAt && first_ * 2 > items_.size()) {
        items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(first_));
        first_ = 0;
      }
    }

   private:
    static constexpr size_t kCompactAt = 64;
    std::vector<T> items_;
    // Index of the front; the items before it are empty.
    size_t first_ = 0;
  };

  Queue<Part> parts_;
  // Bytes of the first part that were consumed.
  size_t skipped_ = 0;
  size_t size_ = 0;
  // Bytes appended and consumed since the beginning.
  uint64_t appended_ = 0;
  uint64_t consumed_ = 0;
  Queue<Mark> marks_;
};

}  // namespace saccade::server
