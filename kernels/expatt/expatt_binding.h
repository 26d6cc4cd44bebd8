// From tensors to the plain problem that the CPU and CUDA code take.
#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/expatt/expatt_impl.h"
#include "kernels/expatt/expatt_problem.h"

namespace saccade::kernels {

// A problem, the tensors its pointers point into, and the result, allocated but not written.
struct ExpattCall {
  ExpattProblem problem;
  at::Tensor before, after, bias, valid, out;
};

// `kind` as CheckExpatt and CheckExpattModule found it. Sigma is the caller's to set: only it knows where it
// is.
ExpattCall BindExpatt(const at::Tensor& v, ExpattKind kind, const OptionalTensor& valid);
// Folds the weights; see ExpattProblem.
ExpattCall BindExpattModule(const at::Tensor& x, const ExpattWeights& weights, ExpattKind kind, double sigma,
                            const OptionalTensor& valid);

}  // namespace saccade::kernels
