// A device whose passes fail, hang or are slow until `heals_at`.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "server/simulation/sim_devices.h"

namespace saccade::server::simulation {

// All passes of an instance fail in [from, to), and take only a small share of the usual time.
struct BrokenInstance {
  int model = 0;
  int instance = 0;
  Nanos from = {};
  Nanos to = {};
};
inline constexpr double kTimeToFail = 0.05;

struct DeviceFaults {
  Nanos heals_at = {};
  // Probabilities, per pass: that it fails after its usual time, takes ten times as long, or takes
  // hang_length longer.
  double error = 0;
  double slow = 0;
  double hang = 0;
  Nanos hang_length = 2 * kSecond;
  // All passes take ten times as long in [slow_from, slow_to).
  Nanos slow_from = {};
  Nanos slow_to = {};
  std::vector<BrokenInstance> broken = {};

  // True if the faults change how long passes take.
  bool misleads() const { return slow > 0 || hang > 0 || slow_to > slow_from; }
};

class FaultyDevices final : public SimDevices {
 public:
  FaultyDevices(std::vector<ModelOptions> models, double jitter, const DeviceFaults& faults, uint64_t seed)
      : SimDevices(std::move(models), jitter, seed), faults_(faults) {}

  Pass Compute(int model, int instance, const std::vector<std::unique_ptr<BatchTask>>& tasks,
               Nanos now) override;

 private:
  const DeviceFaults faults_;
};

}  // namespace saccade::server::simulation
