// Interface between the tensors of expatt_cuda.cc and the kernels of expatt.cu. Includes neither CUDA's nor
// LibTorch's headers.
#pragma once

#include <cstdint>

#include "kernels/expatt/expatt_problem.h"

namespace saccade::kernels {

// Returns the size in floats of the device memory that the launch needs, or -1 if the problem exceeds what
// the kernels support.
int64_t ExpattCudaWorkspaceFloats(const ExpattProblem& problem);

// Returns the size in bytes of the whole map, if the current device can store it for this problem, or 0.
int64_t ExpattCudaMapBytes(const ExpattProblem& problem);

// Enqueues on `stream` (a cudaStream_t) what fills `map`, device memory of ExpattCudaMapBytes() bytes that is
// aligned to 16. Returns null, or CUDA's error message. ExpattProblem::map then makes calls faster that have
// the same kind, extent, sigma and type; it does not change their results.
const char* LaunchExpattMapCuda(const ExpattProblem& problem, void* map, void* stream);

// Enqueues the kernels on `stream` (a cudaStream_t) without blocking. Returns null, or CUDA's error message.
// All pointers are to device memory. Does not allocate or synchronise, so that the call can be captured.
const char* LaunchExpattCuda(const ExpattProblem& problem, float* workspace, void* stream);

}  // namespace saccade::kernels
