// A flag raised when a client goes away; looked at before every stage that costs something.
#pragma once

#include <atomic>

namespace saccade::server {

// Thread-safe. Raised at most once, never lowered.
class Cancellation {
 public:
  void Cancel() { cancelled_.store(true, std::memory_order_release); }
  bool cancelled() const { return cancelled_.load(std::memory_order_acquire); }

 private:
  std::atomic<bool> cancelled_{false};
};

}  // namespace saccade::server
