// A device whose passes fail, hang or are slow until `heals_at`.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "server/simulation/device.h"

namespace saccade::server::simulation {

struct DeviceFaults {
  Instant heals_at = 0;
  // Probabilities, per pass: that it fails after its usual time, takes ten times as long, or takes
  // hang_length longer.
  double error = 0;
  double slow = 0;
  double hang = 0;
  Instant hang_length = 2 * kSecond;
  // All passes take ten times as long in [slow_from, slow_to).
  Instant slow_from = 0;
  Instant slow_to = 0;

  // True if the faults change how long passes take.
  bool misleads() const { return slow > 0 || hang > 0 || slow_to > slow_from; }
};

class FaultyDevice final : public Device {
 public:
  FaultyDevice(std::vector<ModelOptions> models, double jitter, const DeviceFaults& faults, uint64_t seed)
      : Device(std::move(models), jitter, seed), faults_(faults) {}

  Pass Compute(int model, const std::vector<std::unique_ptr<BatchTask>>& tasks, Instant now) override;

 private:
  const DeviceFaults faults_;
};

}  // namespace saccade::server::simulation
