// Schema, argument checks, and the choice between kernel and differentiable reference.
#include "kernels/sao/sao.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include "kernels/common/check.h"
#include "kernels/sao/sao_impl.h"

namespace saccade::kernels {
namespace {

void CheckInput(const char* op, const char* argument, const at::Tensor& input, int64_t heads,
                const OptionalTensor& w, const OptionalTensor& valid) {
  CheckInputMap(op, argument, input, heads);
  if (w.has_value()) CheckVector(op, "w", *w, input, input.sym_size(1));
  CheckValid(op, valid, input);
}

auto SaoOp() {
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("saccade::sao", "").typed<decltype(sao)>();
  return op;
}

auto SaoModuleOp() {
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("saccade::sao_module", "").typed<SaoModuleSchema>();
  return op;
}

at::Tensor SaoAutograd(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const OptionalTensor& w,
                       int64_t heads, bool global_term, const OptionalTensor& valid) {
  if (NeedsDerivative({q, k, v, TensorOrNone(w)})) {
    return SaoReference(q, k, v, w, heads, global_term, valid);
  }
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  return SaoOp().call(q, k, v, w, heads, global_term, valid);
}

at::Tensor CallModule(const at::Tensor& x, const SaoWeights& weights, int64_t heads, bool global_term,
                      bool residual, const OptionalTensor& valid) {
  return SaoModuleOp().call(x, weights.value_weight, weights.w, weights.scale, weights.shift, heads,
                            global_term, residual, valid, weights.query_weight, weights.key_weight);
}

at::Tensor SaoModuleAutograd(const at::Tensor& x, const SaoWeights& weights, int64_t heads, bool global_term,
                             bool residual, const OptionalTensor& valid) {
  if (NeedsDerivative({x, weights.value_weight, TensorOrNone(weights.w), weights.scale, weights.shift,
                       TensorOrNone(weights.query_weight), TensorOrNone(weights.key_weight)})) {
    return SaoModuleReference(x, weights, heads, global_term, residual, valid);
  }
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  return CallModule(x, weights, heads, global_term, residual, valid);
}

}  // namespace

void CheckSao(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const OptionalTensor& w,
              int64_t heads, const OptionalTensor& valid) {
  CheckInput("sao", "q", q, heads, w, valid);
  CheckSameMap("sao", "k", k, q, q.sym_size(1));
  CheckSameMap("sao", "v", v, q, q.sym_size(1));
}

void CheckSaoModule(const at::Tensor& x, const SaoWeights& weights, int64_t heads,
                    const OptionalTensor& valid) {
  constexpr auto kOp = "sao_module";
  CheckInput(kOp, "x", x, heads, weights.w, valid);
  const c10::SymInt channels = x.sym_size(1);
  CheckMatrix(kOp, "value_weight", weights.value_weight, x, channels, channels);
  CheckVector(kOp, "scale", weights.scale, x, channels);
  CheckVector(kOp, "shift", weights.shift, x, channels);
  const auto check_transform = [&](const char* argument, const OptionalTensor& weight) {
    if (weight.has_value()) CheckMatrix(kOp, argument, *weight, x, channels, channels);
  };
  check_transform("query_weight", weights.query_weight);
  check_transform("key_weight", weights.key_weight);
}

at::Tensor sao(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const OptionalTensor& w,
               int64_t heads, bool global_term, const OptionalTensor& valid) {
  return SaoOp().call(q, k, v, w, heads, global_term, valid);
}

at::Tensor sao_module(const at::Tensor& x, const SaoWeights& weights, int64_t heads, bool global_term,
                      bool residual, const OptionalTensor& valid) {
  return CallModule(x, weights, heads, global_term, residual, valid);
}

TORCH_LIBRARY_FRAGMENT(saccade, m) {
  m.def(
      "sao(Tensor q, Tensor k, Tensor v, Tensor? w=None, int heads=1, bool global_term=True, "
      "Tensor? valid=None) -> Tensor");
  m.def(
      "sao_module(Tensor x, Tensor value_weight, Tensor? w, Tensor scale, Tensor shift, int heads=4, "
      "bool global_term=True, bool residual=True, Tensor? valid=None, Tensor? query_weight=None, "
      "Tensor? key_weight=None) -> Tensor");
}

TORCH_LIBRARY_IMPL(saccade, Autograd, m) {
  m.impl("sao", SaoAutograd);
  m.impl("sao_module", SaoModuleAs<SaoModuleAutograd>);
}

}  // namespace saccade::kernels
