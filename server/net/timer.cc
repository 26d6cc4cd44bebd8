#include "server/net/timer.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace saccade::server {

absl::Time Timers::Next() const {
  const auto first = [](const Queue& queue) {
    return queue.empty() ? absl::InfiniteFuture() : queue.begin()->first;
  };
  return std::min(first(due_), first(queue_));
}

void Timers::RunDue(absl::Time now) {
  while (!queue_.empty() && queue_.begin()->first <= now) {
    Timer* const timer = queue_.begin()->second;
    timer->position_ = due_.insert(queue_.extract(queue_.begin()));
    timer->queue_ = &due_;
  }
  // If an action throws, the next call runs the others.
  while (!due_.empty()) {
    Timer* const timer = due_.begin()->second;
    timer->Cancel();
    // A copy, because the action may destroy the timer.
    const std::function<void()> action = timer->action_;
    action();
  }
}

void Timer::Set(absl::Time when) {
  if (when == absl::InfiniteFuture()) return Cancel();
  if (is_set_) {
    auto node = queue_->extract(position_);
    node.key() = when;
    position_ = timers_->queue_.insert(std::move(node));
  } else {
    position_ = timers_->queue_.emplace(when, this);
  }
  queue_ = &timers_->queue_;
  is_set_ = true;
}

void Timer::Cancel() {
  if (!is_set_) return;
  queue_->erase(position_);
  is_set_ = false;
}

}  // namespace saccade::server
