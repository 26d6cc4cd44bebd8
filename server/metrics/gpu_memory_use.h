// What this process holds of a GPU's memory, as the metrics tell it.
#pragma once

#include <cstdint>
#include <string>

namespace saccade::server {

struct GpuMemoryUse {
  std::string uuid;  // without NVML's prefix, as the CUDA driver says it; empty if it does not
  int64_t reserved_bytes = 0;
  int64_t allocated_bytes = 0;
  int64_t retries = 0;  // since the start
};

}  // namespace saccade::server
