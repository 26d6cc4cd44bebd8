// Shared by the files of this operator: argument checks, and the conversion of tensors to the plain problem.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <tuple>

#include "kernels/common/binding.h"
#include "kernels/nms/nms_problem.h"

namespace saccade::kernels {

// Throws c10::Error unless the arguments fit each other. Does not read tensor values.
void CheckNms(const at::Tensor& boxes, const at::Tensor& scores, double iou_threshold,
              const OptionalTensor& labels);

// A problem, the tensors that its pointers point into, and the results, allocated but not yet written.
struct NmsBound {
  NmsProblem problem;
  at::Tensor boxes, scores, labels, out, out_count;
};

NmsBound BindNms(const at::Tensor& boxes, const at::Tensor& scores, double iou_threshold,
                 const OptionalTensor& labels, int64_t max_output);

// Returns the results of nms_padded, uninitialised.
std::tuple<at::Tensor, at::Tensor> NmsResults(const at::Tensor& boxes, int64_t max_output);

}  // namespace saccade::kernels
