// Conversion of tensors to the plain problem that the CPU and CUDA code take.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "kernels/roi_align/roi_align_impl.h"
#include "kernels/roi_align/roi_align_problem.h"

namespace saccade::kernels {

// A problem, the tensors that its pointers point into, and the result, allocated but not yet written.
struct RoiAlignBound {
  RoiAlignProblem problem;
  at::Tensor rois, level_of, out;
  std::vector<at::Tensor> levels, valid;
};

// Checks the arguments (see CheckRoiAlign), allocates the result and fills in the problem. Features are never
// copied.
RoiAlignBound BindRoiAlign(const RoiAlignArguments& call);

}  // namespace saccade::kernels
