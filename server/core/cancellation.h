// Cancellation flag of a call, checked before each expensive stage.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

namespace saccade::server {

// Thread-safe. Once set, the flag is never cleared.
class Cancellation {
 public:
  Cancellation() = default;
  // A flag for a part of a call: cancelling `whole` cancels the part, but not the reverse. `whole` may be
  // null.
  explicit Cancellation(std::shared_ptr<const Cancellation> whole) : whole_(std::move(whole)) {}

  void Cancel() { cancelled_.store(true, std::memory_order_release); }
  bool cancelled() const {
    return cancelled_.load(std::memory_order_acquire) || (whole_ != nullptr && whole_->cancelled());
  }

 private:
  const std::shared_ptr<const Cancellation> whole_;
  std::atomic<bool> cancelled_{false};
};

}  // namespace saccade::server
