// Memory that LibTorch keeps on GPUs.
#pragma once

namespace saccade::models {

// Gives memory that LibTorch holds on GPUs but no tensor uses back to the GPUs, where other processes and
// libraries can have it. Waits for a recording that is under way (StreamRecording) and for the GPUs' work.
// Does nothing if no GPU was used. Only warns if CUDA fails.
void FreeUnusedGpuMemory();

}  // namespace saccade::models
