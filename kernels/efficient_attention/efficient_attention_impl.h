// Shared by the files of this operator: its weights as one value, the argument checks that every backend runs
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

}  // namespace saccade::kernels
