// Between the tensors of nms_cuda.cc and the kernels of nms.cu: neither CUDA's nor LibTorch's headers.
#pragma once

#include <cstdint>

#include "kernels/nms/nms_problem.h"

namespace saccade::kernels {

// 64-bit words of device memory that the launch needs, or -1 if there are more boxes than the kernels take.
int64_t NmsCudaMaskWords(const NmsProblem& problem);

// Enqueues the kernels on `stream` (a cudaStream_t) and returns at once: null, or CUDA's words for what is
// wrong. `order` are the boxes by descending score. All pointers are to device memory. Allocates nothing and
// synchronises nothing, so it can be captured.
const char* LaunchNmsCuda(const NmsProblem& problem, bool float64, const int64_t* order, uint64_t* mask,
                          void* stream);

}  // namespace saccade::kernels
