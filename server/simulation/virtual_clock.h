// The simulation's time as a Clock. Used by one thread only, so AwaitUntil() never blocks.
#pragma once

#include "server/core/clock.h"
#include "server/simulation/virtual_time.h"

namespace saccade::server::simulation {

class VirtualClock final : public Clock {
 public:
  void Set(Nanos now) { now_ = now; }

  absl::Time Now() override { return ToTime(now_); }
  bool AwaitUntil(absl::Mutex* /*mu*/, const absl::Condition& condition, absl::Time /*deadline*/) override {
    return condition.Eval();
  }

 private:
  Nanos now_ = {};
};

}  // namespace saccade::server::simulation
