// Between the tensors of kao_cuda.cc and the kernels of kao.cu: neither CUDA's nor LibTorch's headers.
#pragma once

#include <cstdint>

#include "kernels/kao/kao_problem.h"

namespace saccade::kernels {

// Floats of device memory that the launch needs, or -1 if the problem is larger than the kernels' grids.
int64_t KaoCudaWorkspaceFloats(const KaoProblem& problem);

// Enqueues the kernels on `stream` (a cudaStream_t) and returns at once: null, or CUDA's words for what is
// wrong. All pointers are to device memory, maps are not float64. Allocates nothing and synchronises nothing,
// so it can be captured.
const char* LaunchKaoCuda(const KaoProblem& problem, float* workspace, void* stream);

}  // namespace saccade::kernels
