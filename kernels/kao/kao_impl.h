// Shared by the files of this operator: the argument checks that every backend runs first, and the reference.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>

#include "kernels/common/binding.h"
#include "kernels/kao/kao.h"
#include "kernels/kao/kao_problem.h"

namespace saccade::kernels {

struct KaoArguments {
  const at::Tensor& q;
  const at::Tensor& k;
  const at::Tensor& v;
  int64_t heads;
  const OptionalTensor& coefficient_scale;
  const OptionalTensor& valid;
};

struct KaoModuleArguments {
  const at::Tensor& x;
  std::string_view kind;
  const KaoWeights& weights;
  int64_t heads;
  bool residual;
  const OptionalTensor& valid;
};

// Wrappers with the operators' signatures for functions that take their arguments as one struct, to be
// registered for a dispatch key.
template <KaoKind kKind, at::Tensor (*kRun)(KaoKind, const KaoArguments&)>
at::Tensor KaoAs(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t heads,
                 const OptionalTensor& coefficient_scale, const OptionalTensor& valid) {
  return kRun(kKind, {q, k, v, heads, coefficient_scale, valid});
}

template <at::Tensor (*kRun)(const KaoModuleArguments&)>
at::Tensor KaoModuleAs(const at::Tensor& x, std::string_view kind, const OptionalTensor& query_weight,
                       const OptionalTensor& key_weight, const OptionalTensor& value_weight,
                       const OptionalTensor& query_bias, const OptionalTensor& value_bias,
                       const OptionalTensor& coefficient_scale, const OptionalTensor& scale,
                       const OptionalTensor& shift, int64_t heads, bool residual,
                       const OptionalTensor& valid) {
  const KaoWeights weights{query_weight, key_weight,        value_weight, query_bias,
                           value_bias,   coefficient_scale, scale,        shift};
  return kRun({x, kind, weights, heads, residual, valid});
}
using KaoModuleSchema = decltype(KaoModuleAs<nullptr>);

const char* KaoName(KaoKind kind);

// Throw c10::Error unless the arguments fit each other. Do not read tensor values.
void CheckKao(KaoKind kind, const KaoArguments& a);
// Also returns the parsed kind.
KaoKind CheckKaoModule(const KaoModuleArguments& a);

// Return the number of channels after the transforms: of queries and keys, and of values.
c10::SymInt KeyChannels(const KaoModuleArguments& a);
c10::SymInt ValueChannels(const KaoModuleArguments& a);

// Compositions of ATen operators that follow the formulas directly: differentiable, and the tests' oracle.
at::Tensor KaoReference(KaoKind kind, const KaoArguments& a);
at::Tensor KaoModuleReference(const KaoModuleArguments& a);

}  // namespace saccade::kernels
