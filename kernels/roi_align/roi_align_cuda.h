// Interface between the tensors of roi_align_cuda.cc and the kernel of roi_align.cu. Includes neither CUDA's
// nor LibTorch's headers.
#pragma once

#include "kernels/roi_align/roi_align_problem.h"

namespace saccade::kernels {

// Returns true if maps and bins are small enough for the kernel's tables.
bool RoiAlignFitsCuda(const RoiAlignProblem& problem);

// Enqueues the kernel on `stream` (a cudaStream_t) without blocking. Returns null, or CUDA's error message.
// Features are of `dtype`, which must not be float64; all pointers are to device memory. Does not allocate or
// synchronise, so that the call can be captured.
const char* LaunchRoiAlignCuda(const RoiAlignProblem& problem, Dtype dtype, void* stream);

}  // namespace saccade::kernels
