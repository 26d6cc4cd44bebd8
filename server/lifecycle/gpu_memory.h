// What LibTorch holds of the GPUs' memory, for the metrics.
#pragma once

#include <vector>

#include "server/metrics/gpu_memory_use.h"

namespace saccade::server {

// Empty if no GPU was used.
std::vector<GpuMemoryUse> ReadGpuMemoryUse();

}  // namespace saccade::server
