// Shared by the files of this operator: the argument checks that every backend runs first, and the reference.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>

#include "kernels/common/binding.h"
#include "kernels/efficient_attention/efficient_attention.h"

namespace saccade::kernels {

// Throw c10::Error unless the arguments fit each other. Do not read tensor values.
void CheckEa(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t heads,
             std::string_view normalization, const OptionalTensor& valid);
void CheckEaModule(const at::Tensor& x, const EaWeights& weights, int64_t heads,
                   std::string_view normalization, bool residual, const OptionalTensor& valid);

// Returns the number of channels of the module's result.
c10::SymInt EaOutChannels(const EaWeights& weights);

// Compositions of ATen operators that follow the formulas directly: differentiable, and the tests' oracle.
at::Tensor EaReference(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t heads,
                       std::string_view normalization, const OptionalTensor& valid);
at::Tensor EaModuleReference(const at::Tensor& x, const EaWeights& weights, int64_t heads,
                             std::string_view normalization, bool residual, const OptionalTensor& valid);

// The module's signature in its schema: passes the arguments, which the dispatcher gives one by one, to the
// kRun of a dispatch key.
using EaModuleRun = at::Tensor(const at::Tensor& x, const EaWeights& weights, int64_t heads,
                               std::string_view normalization, bool residual, const OptionalTensor& valid);
template <EaModuleRun* kRun>
at::Tensor EaModuleAs(const at::Tensor& x, const at::Tensor& key_weight, const at::Tensor& query_weight,
                      const at::Tensor& value_weight, const OptionalTensor& key_bias,
                      const OptionalTensor& query_bias, const OptionalTensor& value_bias,
                      const OptionalTensor& out_weight, const OptionalTensor& out_bias, int64_t heads,
                      std::string_view normalization, bool residual, const OptionalTensor& valid) {
  return kRun(
      x, {key_weight, query_weight, value_weight, key_bias, query_bias, value_bias, out_weight, out_bias},
      heads, normalization, residual, valid);
}
using EaModuleSchema = decltype(EaModuleAs<nullptr>);

}  // namespace saccade::kernels
