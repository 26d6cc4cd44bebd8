// What the files of this operator share: its arguments as one value, the checks that every backend makes
// first, and the reference.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>

#include "kernels/common/binding.h"

namespace saccade::kernels {

struct EaWeights {
  const at::Tensor& key;
  const at::Tensor& query;
  const at::Tensor& value;
  const OptionalTensor& key_bias;
  const OptionalTensor& query_bias;
  const OptionalTensor& value_bias;
  const OptionalTensor& out;
  const OptionalTensor& out_bias;
};

// Throw c10::Error unless the arguments fit each other. Values of tensors are not looked at.
void CheckEa(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t heads,
             std::string_view normalization, const OptionalTensor& valid);
void CheckEaModule(const at::Tensor& x, const EaWeights& weights, int64_t heads,
                   std::string_view normalization, bool residual, const OptionalTensor& valid);

// Channels of the module's result.
c10::SymInt EaOutChannels(const EaWeights& weights);

// Compositions of ATen operators, straight from the formulas: differentiable, and the tests' oracle.
at::Tensor EaReference(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t heads,
                       std::string_view normalization, const OptionalTensor& valid);
at::Tensor EaModuleReference(const at::Tensor& x, const EaWeights& weights, int64_t heads,
                             std::string_view normalization, bool residual, const OptionalTensor& valid);

}  // namespace saccade::kernels
