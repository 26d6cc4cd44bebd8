// Spreads the refused over time: clients wait for exactly as long as they are told.
#pragma once

#include <atomic>
#include <cstdint>

#include "absl/time/time.h"

namespace saccade::server {

// Thread-safe.
class RetryJitter {
 public:
  // The same seed gives the same sequence, to calls that come one after the other.
  explicit RetryJitter(uint64_t seed) : state_(seed) {}

  // Between half and one and a half times `hint`, in whole milliseconds, at least one.
  absl::Duration Spread(absl::Duration hint);

 private:
  std::atomic<uint64_t> state_;
};

}  // namespace saccade::server
