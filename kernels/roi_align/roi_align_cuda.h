// Between the tensors of roi_align_cuda.cc and the kernel of roi_align.cu: neither CUDA's nor LibTorch's
// headers.
#pragma once

#include "kernels/roi_align/roi_align_problem.h"

namespace saccade::kernels {

// Whether maps and bins are few enough for the kernel's tables.
bool RoiAlignFitsCuda(const RoiAlignProblem& problem);

// Enqueues the kernel on `stream` (a cudaStream_t) and returns at once: null, or CUDA's words for what is
// wrong. Features are of `dtype`, not float64; all pointers are to device memory. Allocates nothing and
// synchronises nothing, so it can be captured.
const char* LaunchRoiAlignCuda(const RoiAlignProblem& problem, Dtype dtype, void* stream);

}  // namespace saccade::kernels
