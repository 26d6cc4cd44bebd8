#include "server/core/clock.h"

#include "absl/time/clock.h"

namespace saccade::server {
namespace {

class RealClock final : public Clock {
 public:
  absl::Time Now() override { return absl::Now(); }

  bool AwaitUntil(absl::Mutex* mu, const absl::Condition& condition, absl::Time deadline) override {
    return mu->AwaitWithDeadline(condition, deadline);
  }
};

}  // namespace

Clock* Clock::Real() {
  static RealClock* clock = new RealClock;
  return clock;
}

}  // namespace saccade::server
