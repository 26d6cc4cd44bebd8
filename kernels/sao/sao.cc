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
      c10::Dispatcher::singleton().findSchemaOrThrow("saccade::sao_module", "").typed<decltype(sao_module)>();
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

at::Tensor SaoModuleAutograd(const at::Tensor& x, const at::Tensor& value_weight, const OptionalTensor& w,
                             const at::Tensor& scale, const at::Tensor& shift, int64_t heads,
                             bool global_term, bool residual, const OptionalTensor& valid,
                             const OptionalTensor& query_weight, const OptionalTensor& key_weight) {
  if (NeedsDerivative({x, value_weight, TensorOrNone(w), scale, shift, TensorOrNone(query_weight),
                       TensorOrNone(key_weight)})) {
    return SaoModuleReference(x, value_weight, w, scale, shift, heads, global_term, residual, valid,
                              query_weight, key_weight);
  }
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  return SaoModuleOp().call(x, value_weight, w, scale, shift, heads, global_term, residual, valid,
                            query_weight, key_weight);
}

}  // namespace

void CheckSao(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const OptionalTensor& w,
              int64_t heads, const OptionalTensor& valid) {
  CheckInput("sao", "q", q, heads, w, valid);
  CheckSameMap("sao", "k", k, q, q.sym_size(1));
  CheckSameMap("sao", "v", v, q, q.sym_size(1));
}

void CheckSaoModule(const at::Tensor& x, const at::Tensor& value_weight, const OptionalTensor& w,
                    const at::Tensor& scale, const at::Tensor& shift, int64_t heads,
                    const OptionalTensor& valid, const OptionalTensor& query_weight,
                    const OptionalTensor& key_weight) {
  constexpr auto kOp = "sao_module";
  CheckInput(kOp, "x", x, heads, w, valid);
  const c10::SymInt channels = x.sym_size(1);
  CheckMatrix(kOp, "value_weight", value_weight, x, channels, channels);
  CheckVector(kOp, "scale", scale, x, channels);
  CheckVector(kOp, "shift", shift, x, channels);
  if (query_weight.has_value()) CheckMatrix(kOp, "query_weight", *query_weight, x, channels, channels);
  if (key_weight.has_value()) CheckMatrix(kOp, "key_weight", *key_weight, x, channels, channels);
}

at::Tensor sao(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const OptionalTensor& w,
               int64_t heads, bool global_term, const OptionalTensor& valid) {
  return SaoOp().call(q, k, v, w, heads, global_term, valid);
}

at::Tensor sao_module(const at::Tensor& x, const at::Tensor& value_weight, const OptionalTensor& w,
                      const at::Tensor& scale, const at::Tensor& shift, int64_t heads, bool global_term,
                      bool residual, const OptionalTensor& valid, const OptionalTensor& query_weight,
                      const OptionalTensor& key_weight) {
  return SaoModuleOp().call(x, value_weight, w, scale, shift, heads, global_term, residual, valid,
                            query_weight, key_weight);
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
  m.impl("sao_module", SaoModuleAutograd);
}

}  // namespace saccade::kernels
