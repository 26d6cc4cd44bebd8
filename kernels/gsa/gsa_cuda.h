// Between the tensors of gsa_cuda.cc and the kernels of gsa.cu: neither CUDA's nor LibTorch's headers.
#pragma once

#include <cstdint>

#include "kernels/gsa/gsa_problem.h"

namespace saccade::kernels {

// Floats of device memory that the launch needs, or -1 if the problem is larger than the kernels' grids.
int64_t GsaCudaWorkspaceFloats(const GsaProblem& problem);

// Enqueues the kernels on `stream` (a cudaStream_t) and returns at once: null, or CUDA's words for what is
// wrong. All pointers are to device memory. Allocates nothing and synchronises nothing, so it can be
// captured.
const char* LaunchGsaCuda(const GsaProblem& problem, float* workspace, void* stream);

}  // namespace saccade::kernels
