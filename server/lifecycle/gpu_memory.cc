#include "server/lifecycle/gpu_memory.h"

#include <cstddef>

#include "kernels/common/cuda_plugin.h"
#include "models/device/gpu_memory.h"

namespace saccade::server {

std::vector<GpuMemoryUse> ReadGpuMemoryUse() {
  const kernels::CudaPlugin& plugin = kernels::LoadCudaPlugin();
  std::vector<GpuMemoryUse> uses;
  for (int gpu = 0; gpu < plugin.devices; ++gpu) {
    const auto memory = models::ReadGpuMemory(gpu);
    if (!memory) continue;
    uses.push_back({.uuid = plugin.uuids.at(static_cast<size_t>(gpu)),
                    .reserved_bytes = memory->reserved_bytes,
                    .allocated_bytes = memory->allocated_bytes,
                    .retries = memory->retries});
  }
  return uses;
}

}  // namespace saccade::server
