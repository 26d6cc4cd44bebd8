// Metrics of the machine's GPUs under Triton's names, read when scraped.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include <memory>

#include "server/metrics/nvml.h"

namespace saccade::server {

// Not thread-safe.
class GpuMetrics {
 public:
  // Creates no series if `nvml` is null.
  GpuMetrics(prometheus::Registry& registry, std::unique_ptr<Nvml> nvml);
  ~GpuMetrics();

  // Values that cannot be read stay unchanged.
  void Update();

 private:
  struct Families;

  const std::unique_ptr<Nvml> nvml_;
  std::unique_ptr<Families> families_;
};

}  // namespace saccade::server
