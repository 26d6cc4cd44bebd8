// The CUDA side of all operators is one plugin library that is opened at run time: the same binary serves
// machines with and without a GPU, and CPU machines do not load torch_cuda.
#pragma once

#include <string>
#include <vector>

namespace saccade::kernels {

struct CudaPlugin {
  bool loaded = false;
  int devices = 0;
  // GpuName() of each device.
  std::vector<std::string> names;
  // GpuUuid() of each device.
  std::vector<std::string> uuids;
  // Why the plugin is not loaded, as a message for the administrator; empty if it is loaded.
  std::string reason;
};

// If a GPU is present, opens libtorch_cuda.so and libsaccade_cuda.so (from the folder of
// libsaccade_kernels.so), whose operators register themselves. The first call may take seconds; later calls
// return its result. Thread-safe. Never throws.
const CudaPlugin& LoadCudaPlugin();

// Returns the address of a function that the plugin exports, or null.
void* CudaPluginSymbol(const char* name);

}  // namespace saccade::kernels
