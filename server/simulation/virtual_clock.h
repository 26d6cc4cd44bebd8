// The simulation's time as a Clock. Used by one thread only, so AwaitUntil() never blocks.
#pragma once

#include "server/core/clock.h"
#include "server/simulation/instant.h"

namespace saccade::server::simulation {

class VirtualClock final : public Clock {
 public:
  void Set(Instant now) { now_ = now; }

  absl::Time Now() override { return ToTime(now_); }
  bool AwaitUntil(absl::Mutex* /*mu*/, const absl::Condition& condition, absl::Time /*deadline*/) override {
    return condition.Eval();
  }

 private:
  Instant now_ = 0;
};

}  // namespace saccade::server::simulation
