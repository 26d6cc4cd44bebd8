// What computes: instances with a latency model, and noise.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "server/batching/batch_task.h"
#include "server/simulation/latency_model.h"
#include "server/simulation/random.h"

namespace saccade::server::simulation {

struct ModelOptions {
  int instances = 1;
  // Of each instance; empty: all compute at one.
  std::vector<int> places = {};
  LatencyModel latency = {};
  // By bucket.
  std::vector<Shape> shapes = {Shape{}};

  int PlaceOf(int instance) const { return places.empty() ? 0 : places[instance]; }

  // Of a batch without noise. REQUIRES: the task's bucket has a shape.
  Instant Latency(int64_t bucket, int64_t pictures) const {
    return latency(static_cast<double>(pictures) * shapes[bucket].area());
  }
};

class Device {
 public:
  struct Pass {
    Instant took = 0;
    bool ok = true;
  };

  // Noise: a pass takes 1 + jitter * a normal variable times as long, cut off at three sigmas.
  Device(std::vector<ModelOptions> models, double jitter, uint64_t seed)
      : models_(std::move(models)), jitter_(jitter), random_(seed) {}
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  // A batch of pictures of several buckets is padded to what holds all.
  virtual Pass Compute(int model, const std::vector<std::unique_ptr<BatchTask>>& tasks, Instant now);

  const std::vector<ModelOptions>& models() const { return models_; }

 protected:
  Random& random() { return random_; }

 private:
  const std::vector<ModelOptions> models_;
  const double jitter_;
  Random random_;
};

}  // namespace saccade::server::simulation
