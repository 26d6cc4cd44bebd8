// Interface between the tensors of kao_cuda.cc and the kernels of kao.cu. Includes neither CUDA's nor
// LibTorch's headers.
#pragma once

#include <cstdint>

#include "kernels/kao/kao_problem.h"

namespace saccade::kernels {

// Returns the size in floats of the device memory that the launch needs, or -1 if the problem exceeds the
// kernels' grids.
int64_t KaoCudaWorkspaceFloats(const KaoProblem& problem);

// Enqueues the kernels on `stream` (a cudaStream_t) without blocking. Returns null, or CUDA's error message.
// All pointers are to device memory; maps must not be float64. Does not allocate or synchronise, so that the
// call can be captured.
const char* LaunchKaoCuda(const KaoProblem& problem, float* workspace, void* stream);

}  // namespace saccade::kernels
