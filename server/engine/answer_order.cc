#include "server/engine/answer_order.h"

#include <exception>
#include <utility>

#include "absl/strings/string_view.h"
#include "server/core/inline_passes.h"
#include "server/logging/log.h"

namespace saccade::server {

AnswerOrder::Turn::Turn(Turn&& other) noexcept
    : order_(std::exchange(other.order_, nullptr)), number_(other.number_) {}

void AnswerOrder::Turn::Answer(Leave leave) {
  std::exchange(order_, nullptr)->End(number_, std::move(leave));
}

void AnswerOrder::Turn::Skip() {
  if (order_ != nullptr) std::exchange(order_, nullptr)->End(number_, nullptr);
}

AnswerOrder::Turn AnswerOrder::Enter() {
  absl::MutexLock lock(&mutex_);
  slots_.emplace_back();
  return Turn(this, first_ + static_cast<int64_t>(slots_.size()) - 1);
}

void AnswerOrder::End(int64_t number, Leave leave) {
  {
    absl::MutexLock lock(&mutex_);
    Slot& slot = slots_[static_cast<size_t>(number - first_)];
    slot.ended = true;
    slot.leave = std::move(leave);
    if (leaving_) return;
    leaving_ = true;
  }
  // A callback may start another call. Its pass must not run on this thread, which would delay the other
  // answers.
  const LimitInlinePasses limit(InlinePasses::kNone);
  // Without the lock, because the callback may call Enter(), and destroying it may free much.
  for (Leave next; TakeFirst(next);) {
    try {
      if (next) std::move(next)();
    } catch (const std::exception& error) {
      // The others leave all the same.
      Log(LogLevel::kError, "an answer could not be made", {{"what", absl::string_view(error.what())}});
    }
    next = nullptr;
  }
}

bool AnswerOrder::TakeFirst(Leave& leave) {
  absl::MutexLock lock(&mutex_);
  if (slots_.empty() || !slots_.front().ended) {
    leaving_ = false;
    return false;
  }
  leave = std::move(slots_.front().leave);
  slots_.pop_front();
  ++first_;
  return true;
}

}  // namespace saccade::server
