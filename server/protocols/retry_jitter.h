// Spreads the retries of rejected clients over time, because clients wait exactly as long as they are told.
#pragma once

#include <atomic>
#include <cstdint>

#include "absl/time/time.h"

namespace saccade::server {

// Thread-safe.
class RetryJitter {
 public:
  // Equal seeds give equal sequences for sequential calls.
  explicit RetryJitter(uint64_t seed) : state_(seed) {}

  // A random duration between 0.5 and 1.5 times `hint`, in whole milliseconds, at least one.
  absl::Duration Spread(absl::Duration hint);

 private:
  std::atomic<uint64_t> state_;
};

}  // namespace saccade::server
