// Interface between the tensors of nms_cuda.cc and the kernels of nms.cu. Includes neither CUDA's nor
// LibTorch's headers.
#pragma once

#include <cstdint>

#include "kernels/nms/nms_problem.h"

namespace saccade::kernels {

// Returns the number of 64-bit words of device memory that the launch needs, or -1 if there are more boxes
// than the kernels support.
int64_t NmsCudaMaskWords(const NmsProblem& problem);

// Enqueues the kernels on `stream` (a cudaStream_t) without blocking. Returns null, or CUDA's error message.
// `order` holds the boxes' indices by descending score. All pointers are to device memory. Does not allocate
// or synchronise, so that the call can be captured.
const char* LaunchNmsCuda(const NmsProblem& problem, bool float64, const int64_t* order, uint64_t* mask,
                          void* stream);

}  // namespace saccade::kernels
