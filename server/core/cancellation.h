// A flag raised when a client goes away; looked at before every stage that costs something.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

namespace saccade::server {

// Thread-safe. Raised at most once, never lowered.
class Cancellation {
 public:
  Cancellation() = default;
  // Of a part of what `whole` stands for: raised with it, but not the other way round. `whole` may be null.
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
