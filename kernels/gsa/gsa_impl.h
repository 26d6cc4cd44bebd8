// Shared by the files of this operator: its arguments as values, the argument checks that every backend runs
// first, and the reference.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>

#include "kernels/common/binding.h"
#include "kernels/gsa/gsa_problem.h"

namespace saccade::kernels {

// The arguments that the operator and the module have in common.
struct GsaAttention {
  int64_t heads;
  const OptionalTensor& column_embedding;
  const OptionalTensor& row_embedding;
  const OptionalTensor& middle_scale;
  const OptionalTensor& middle_shift;
  std::string_view content;
};

struct GsaWeights {
  const at::Tensor& query;
  const OptionalTensor& key;
  const at::Tensor& value;
  const OptionalTensor& query_bias;
  const OptionalTensor& key_bias;
  const OptionalTensor& value_bias;
  const OptionalTensor& scale;
  const OptionalTensor& shift;
};

// Throw c10::Error unless the arguments fit each other. Do not read tensor values.
void CheckGsa(const at::Tensor& q, const OptionalTensor& k, const at::Tensor& v,
              const GsaAttention& attention, const OptionalTensor& valid);
void CheckGsaModule(const at::Tensor& x, const GsaWeights& weights, const GsaAttention& attention,
                    const OptionalTensor& valid);

// REQUIRES: `content` has passed CheckGsa or CheckGsaModule.
GsaContent ContentOf(std::string_view content);

// Compositions of ATen operators that follow the formulas directly: differentiable, and the tests' oracle.
at::Tensor GsaReference(const at::Tensor& q, const OptionalTensor& k, const at::Tensor& v,
                        const GsaAttention& attention, const OptionalTensor& valid);
at::Tensor GsaModuleReference(const at::Tensor& x, const GsaWeights& weights, const GsaAttention& attention,
                              const OptionalTensor& valid);

}  // namespace saccade::kernels
