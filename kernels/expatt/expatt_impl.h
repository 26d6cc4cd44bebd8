// Shared by the files of this operator: the argument checks that every backend runs first, and the reference.
#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>

#include "kernels/common/binding.h"
#include "kernels/expatt/expatt_problem.h"

namespace saccade::kernels {

// The weights of the module, as passed by the caller.
struct ExpattWeights {
  at::Tensor value;
  OptionalTensor value_bias, out, out_bias;

  c10::SymInt out_channels() const { return (out.has_value() ? *out : value).sym_size(0); }
};

// Throw c10::Error unless the arguments fit each other; return the parsed `kind`. Do not read tensor values.
ExpattKind CheckExpatt(const at::Tensor& v, std::string_view kind, const at::Tensor& sigma,
                       const OptionalTensor& valid);
ExpattKind CheckExpattModule(const at::Tensor& x, const ExpattWeights& weights, std::string_view kind,
                             double sigma, const OptionalTensor& valid);
// Throws c10::Error unless sigma is finite and positive (for gaussian: not zero), or the kind ignores it.
void CheckSigma(const char* op, ExpattKind kind, double sigma);

// Compositions of ATen operators that follow the formulas directly and build the whole map: differentiable,
// and the tests' oracle.
at::Tensor ExpattReference(const at::Tensor& v, std::string_view kind, const at::Tensor& sigma,
                           const OptionalTensor& valid);
at::Tensor ExpattModuleReference(const at::Tensor& x, const ExpattWeights& weights, std::string_view kind,
                                 double sigma, const OptionalTensor& valid);

}  // namespace saccade::kernels
