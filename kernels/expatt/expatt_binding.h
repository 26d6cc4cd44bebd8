// Conversion of tensors to the plain problem that the CPU and CUDA code take.
#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/expatt/expatt_impl.h"
#include "kernels/expatt/expatt_problem.h"

namespace saccade::kernels {

// A problem, the tensors that its pointers point into, and the result, allocated but not yet written.
struct ExpattCall {
  ExpattProblem problem;
  at::Tensor before, after, bias, valid, out;
};

// `kind` is the result of CheckExpatt or CheckExpattModule. The caller must set sigma, which is on the host
// or on the device.
ExpattCall BindExpatt(const at::Tensor& v, ExpattKind kind, const OptionalTensor& valid);
// Also folds the weights; see ExpattProblem.
ExpattCall BindExpattModule(const at::Tensor& x, const ExpattWeights& weights, ExpattKind kind, double sigma,
                            const OptionalTensor& valid);

}  // namespace saccade::kernels
