// Metrics of the machine's GPUs under Triton's names, read when scraped.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/metrics/gpu_memory_use.h"
#include "server/metrics/nvml.h"

namespace saccade::server {

// Not thread-safe.
class GpuMetrics {
 public:
  // Creates no series if `nvml` is null.
  GpuMetrics(prometheus::Registry& registry, std::unique_ptr<Nvml> nvml);
  ~GpuMetrics();

  // What Update() tells of the memory that LibTorch holds; GPUs that are missing here have none.
  void SetMemoryUse(std::vector<GpuMemoryUse> uses) { uses_ = std::move(uses); }

  // Values that cannot be read stay unchanged.
  void Update();

 private:
  struct Families;

  GpuMemoryUse UseOf(const std::string& uuid) const;

  const std::unique_ptr<Nvml> nvml_;
  std::unique_ptr<Families> families_;
  std::vector<GpuMemoryUse> uses_;
};

}  // namespace saccade::server
