// Between the tensors of expatt_cuda.cc and the kernels of expatt.cu: neither CUDA's nor LibTorch's headers.
#pragma once

#include <cstdint>

#include "kernels/expatt/expatt_problem.h"

namespace saccade::kernels {

// Floats of device memory that the launch needs, or -1 if the problem is larger than the kernels take.
int64_t ExpattCudaWorkspaceFloats(const ExpattProblem& problem);

// Enqueues the kernels on `stream` (a cudaStream_t) and returns at once: null, or CUDA's words for what is
// wrong. All pointers are to device memory. Allocates nothing and synchronises nothing, so it can be
// captured.
const char* LaunchExpattCuda(const ExpattProblem& problem, float* workspace, void* stream);

}  // namespace saccade::kernels
