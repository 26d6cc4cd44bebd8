// What a GPU is called, asked of the driver API: CUDA's runtime would have to be linked, and not every
// machine has it.
#pragma once

#include <string>

namespace saccade::kernels {

// "NVIDIA H200 sm_90": the name and the compute capability of GPU `gpu`. `driver` is the opened library of
// the driver, libcuda.so.1, after cuInit. Empty if the driver does not say both.
std::string GpuName(void* driver, int gpu);

// "4c7aa0b1-...": the UUID of GPU `gpu`, or of an instance of MIG, without the prefix GPU- or MIG- that NVML
// gives it. Empty if the driver does not say it.
std::string GpuUuid(void* driver, int gpu);

}  // namespace saccade::kernels
