// Shared by the files of this operator: the argument checks that every backend runs first, and the reference.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>

#include "kernels/common/binding.h"
#include "kernels/gsa/gsa.h"
#include "kernels/gsa/gsa_problem.h"

namespace saccade::kernels {

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

// The operators' signatures in their schemas: pass the arguments, which the dispatcher gives one by one, to
// the kRun of a dispatch key.
using GsaRun = at::Tensor(const at::Tensor& q, const OptionalTensor& k, const at::Tensor& v,
                          const GsaAttention& attention, const OptionalTensor& valid);
template <GsaRun* kRun>
at::Tensor GsaAs(const at::Tensor& q, const OptionalTensor& k, const at::Tensor& v, int64_t heads,
                 const OptionalTensor& column_embedding, const OptionalTensor& row_embedding,
                 const OptionalTensor& middle_scale, const OptionalTensor& middle_shift,
                 std::string_view content, const OptionalTensor& valid) {
  return kRun(q, k, v, {heads, column_embedding, row_embedding, middle_scale, middle_shift, content}, valid);
}
using GsaSchema = decltype(GsaAs<nullptr>);

using GsaModuleRun = at::Tensor(const at::Tensor& x, const GsaWeights& weights, const GsaAttention& attention,
                                const OptionalTensor& valid);
template <GsaModuleRun* kRun>
at::Tensor GsaModuleAs(const at::Tensor& x, const at::Tensor& query_weight, const OptionalTensor& key_weight,
                       const at::Tensor& value_weight, const OptionalTensor& query_bias,
                       const OptionalTensor& key_bias, const OptionalTensor& value_bias, int64_t heads,
                       const OptionalTensor& column_embedding, const OptionalTensor& row_embedding,
                       const OptionalTensor& middle_scale, const OptionalTensor& middle_shift,
                       const OptionalTensor& scale, const OptionalTensor& shift, std::string_view content,
                       const OptionalTensor& valid) {
  return kRun(x, {query_weight, key_weight, value_weight, query_bias, key_bias, value_bias, scale, shift},
              {heads, column_embedding, row_embedding, middle_scale, middle_shift, content}, valid);
}
using GsaModuleSchema = decltype(GsaModuleAs<nullptr>);

}  // namespace saccade::kernels
