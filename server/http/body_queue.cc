#include "server/http/body_queue.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace saccade::server {

void BodyQueue::Add(BytePieces message) {
  const size_t size = message.size();
  messages_.push_back(std::move(message));
  size_ += size;
}

void BodyQueue::MoveTo(Output& output, size_t size) {
  size_ -= size;
  while (size > 0) {
    BytePieces& front = messages_[first_];
    if (!split_ && size >= front.size()) {
      size -= front.size();
      output.Add(std::move(front));
      PopFront();
      continue;
    }
    if (!split_) {
      auto whole = std::make_shared<const BytePieces>(std::move(front));
      split_ = Split{whole, PieceReader(*whole), whole->size()};
    }
    const size_t taken = std::min(size, split_->left);
    BytePieces part(std::string_view(), split_->whole);
    split_->rest.Take(taken, part);
    output.Add(std::move(part));
    size -= taken;
    split_->left -= taken;
    if (split_->left == 0) PopFront();
  }
}

void BodyQueue::Clear() {
  messages_.clear();
  first_ = size_ = 0;
  split_.reset();
}

void BodyQueue::PopFront() {
  // A long queue is shortened now and then, so that it does not grow for ever.
  constexpr size_t kShortenAt = 64;
  split_.reset();
  messages_[first_++] = BytePieces();
  if (first_ == messages_.size()) {
    messages_.clear();
    first_ = 0;
  } else if (first_ >= kShortenAt && first_ * 2 > messages_.size()) {
    messages_.erase(messages_.begin(), messages_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
  }
}

}  // namespace saccade::server
