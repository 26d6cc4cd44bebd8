// Memory that LibTorch keeps on GPUs.
#pragma once

#include <cstdint>
#include <optional>

namespace saccade::models {

// Gives memory that LibTorch holds on GPUs, or page-locked for them, but no tensor uses back to the GPUs and
// the machine, where other processes and libraries can have it. Waits for a recording that is under way
// (StreamRecording) and for the GPUs' work. Does nothing if no GPU was used. Only warns if CUDA fails.
void FreeUnusedGpuMemory();

struct GpuMemory {
  int64_t reserved_bytes = 0;   // held by LibTorch: for tensors, for recordings, and for later passes
  int64_t allocated_bytes = 0;  // of these, the tensors'
  // Allocations since the start for which the GPU had no memory until LibTorch gave back what no tensor used.
  int64_t retries = 0;
};

// What LibTorch holds of a GPU's memory. Nothing if no GPU was used, or if the GPU does not exist. May wait
// while memory is given back to the GPU.
std::optional<GpuMemory> ReadGpuMemory(int gpu);

}  // namespace saccade::models
