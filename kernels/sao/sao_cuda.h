// Interface between the tensors of sao_cuda.cc and the kernels of sao.cu. Includes neither CUDA's nor
// LibTorch's headers.
#pragma once

#include <cstdint>

#include "kernels/sao/sao_problem.h"

namespace saccade::kernels {

// Returns the size in floats of the device memory that the launch needs, or -1 if the problem has more heads,
// channels, positions or samples than the kernels support.
int64_t SaoCudaWorkspaceFloats(const SaoProblem& problem);

// Enqueues the kernels on `stream` (a cudaStream_t) without blocking. Returns null, or CUDA's error message.
// All pointers are to device memory. Does not allocate or synchronise, so that the call can be captured.
const char* LaunchSaoCuda(const SaoProblem& problem, Dtype dtype, float* workspace, void* stream);

}  // namespace saccade::kernels
