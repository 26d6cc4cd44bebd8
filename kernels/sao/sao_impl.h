// Shared by the files of this operator: the argument checks that every backend runs first, and the reference.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "kernels/common/binding.h"
#include "kernels/sao/sao.h"

namespace saccade::kernels {

// Throw c10::Error unless the arguments fit each other. Do not read tensor values.
void CheckSao(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const OptionalTensor& w,
              int64_t heads, const OptionalTensor& valid);
void CheckSaoModule(const at::Tensor& x, const SaoWeights& weights, int64_t heads,
                    const OptionalTensor& valid);

// Compositions of ATen operators that follow the formulas directly: differentiable, and the tests' oracle.
at::Tensor SaoReference(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                        const OptionalTensor& w, int64_t heads, bool global_term,
                        const OptionalTensor& valid);
at::Tensor SaoModuleReference(const at::Tensor& x, const SaoWeights& weights, int64_t heads, bool global_term,
                              bool residual, const OptionalTensor& valid);

// The module's signature in its schema: passes the arguments, which the dispatcher gives one by one, to the
// kRun of a dispatch key.
using SaoModuleRun = at::Tensor(const at::Tensor& x, const SaoWeights& weights, int64_t heads,
                                bool global_term, bool residual, const OptionalTensor& valid);
template <SaoModuleRun* kRun>
at::Tensor SaoModuleAs(const at::Tensor& x, const at::Tensor& value_weight, const OptionalTensor& w,
                       const at::Tensor& scale, const at::Tensor& shift, int64_t heads, bool global_term,
                       bool residual, const OptionalTensor& valid, const OptionalTensor& query_weight,
                       const OptionalTensor& key_weight) {
  return kRun(x, {value_weight, w, scale, shift, query_weight, key_weight}, heads, global_term, residual,
              valid);
}
using SaoModuleSchema = decltype(SaoModuleAs<nullptr>);

}  // namespace saccade::kernels
