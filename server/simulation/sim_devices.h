// The simulated devices: instances with a latency model and noise.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "server/batching/batch_task.h"
#include "server/simulation/linear_latency.h"
#include "server/simulation/random.h"

namespace saccade::server::simulation {

struct ModelOptions {
  int instances = 1;
  // The device of each instance. Empty: all instances share device 0.
  std::vector<int> devices = {};
  LinearLatency latency = {};
  // One shape per bucket.
  std::vector<Shape> shapes = {Shape{}};
  // If not empty, the measured time of a pass by bucket and by size (the first is that of size 1), used in
  // place of `latency` for batches of one bucket.
  std::vector<std::vector<Nanos>> measured = {};

  int DeviceOf(int instance) const { return devices.empty() ? 0 : devices[instance]; }

  // Noise-free time of a batch of `pictures` items. REQUIRES: `bucket` has a shape.
  Nanos Latency(int64_t bucket, int64_t pictures) const {
    if (!measured.empty()) return measured[bucket][pictures - 1];
    return latency(static_cast<double>(pictures) * shapes[bucket].area());
  }
};

class SimDevices {
 public:
  struct Pass {
    Nanos took = {};
    bool ok = true;
  };

  // A pass's time is multiplied by 1 + jitter * X, where X is a standard normal variable clamped to +-3.
  SimDevices(std::vector<ModelOptions> models, double jitter, uint64_t seed)
      : models_(std::move(models)), jitter_(jitter), random_(seed) {}
  virtual ~SimDevices() = default;
  SimDevices(const SimDevices&) = delete;
  SimDevices& operator=(const SimDevices&) = delete;

  // A batch with items of several buckets is padded to the smallest shape that holds all of them.
  virtual Pass Compute(int model, int instance, const std::vector<std::unique_ptr<BatchTask>>& tasks,
                       Nanos now);

  const std::vector<ModelOptions>& models() const { return models_; }

 protected:
  Random& random() { return random_; }

 private:
  const std::vector<ModelOptions> models_;
  const double jitter_;
  Random random_;
};

}  // namespace saccade::server::simulation
