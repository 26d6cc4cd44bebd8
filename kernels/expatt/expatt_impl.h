// What the files of this operator share: the checks that every backend makes first, and the reference.
#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>

#include "kernels/common/binding.h"
#include "kernels/expatt/expatt_problem.h"

namespace saccade::kernels {

// The weights of the module, as they came.
struct ExpattWeights {
  at::Tensor value;
  OptionalTensor value_bias, out, out_bias;

  c10::SymInt out_channels() const { return (out.has_value() ? *out : value).sym_size(0); }
};

// Throw c10::Error unless the arguments fit each other; return what `kind` means. Values of tensors are not
// looked at.
ExpattKind CheckExpatt(const at::Tensor& v, std::string_view kind, const at::Tensor& sigma,
                       const OptionalTensor& valid);
ExpattKind CheckExpattModule(const at::Tensor& x, const ExpattWeights& weights, std::string_view kind,
                             double sigma, const OptionalTensor& valid);
// Throws unless it is finite and positive, or the kind does not look at it.
void CheckSigma(const char* op, ExpattKind kind, double sigma);

// Compositions of ATen operators, straight from the formulas, map and all: differentiable, and the tests'
// oracle.
at::Tensor ExpattReference(const at::Tensor& v, std::string_view kind, const at::Tensor& sigma,
                           const OptionalTensor& valid);
at::Tensor ExpattModuleReference(const at::Tensor& x, const ExpattWeights& weights, std::string_view kind,
                                 double sigma, const OptionalTensor& valid);

}  // namespace saccade::kernels
