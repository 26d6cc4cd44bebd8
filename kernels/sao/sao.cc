// Schema, checks, and the choice between kernel and differentiable reference.
#include "kernels/sao/sao.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>

#include "kernels/common/check.h"
#include "kernels/sao/sao_impl.h"

namespace saccade::kernels {
namespace {

void CheckWeights(const char* op, const char* argument, const at::Tensor& weights, const at::Tensor& like) {
  CheckDevice(op, argument, weights, like.device());
  const auto accumulate = AccumulateType(like.scalar_type());
  if (like.scalar_type() == accumulate) {
    CheckDtype(op, argument, weights, {accumulate});
  } else {
    CheckDtype(op, argument, weights, {accumulate, like.scalar_type()});
  }
}

void CheckInput(const char* op, const char* argument, const at::Tensor& input, int64_t heads,
                const OptionalTensor& w, const OptionalTensor& valid) {
  CheckFeatureMap(op, argument, input, heads);
  CheckDtype(op, argument, input, {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf});
  if (w.has_value()) {
    CheckShape(op, "w", *w, {input.sym_size(1)});
    CheckWeights(op, "w", *w, input);
  }
  if (valid.has_value()) {
    CheckDevice(op, "valid", *valid, input.device());
    CheckDtype(op, "valid", *valid, {at::kLong});
    CheckShape(op, "valid", *valid, {input.sym_size(0), c10::SymInt(input.dim() - 2)});
  }
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
  if (NeedsDerivative({q, k, v, w.value_or(at::Tensor())})) {
    return SaoReference(q, k, v, w, heads, global_term, valid);
  }
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  return SaoOp().call(q, k, v, w, heads, global_term, valid);
}

at::Tensor SaoModuleAutograd(const at::Tensor& x, const at::Tensor& value_weight, const OptionalTensor& w,
                             const at::Tensor& scale, const at::Tensor& shift, int64_t heads,
                             bool global_term, bool residual, const OptionalTensor& valid) {
  if (NeedsDerivative({x, value_weight, w.value_or(at::Tensor()), scale, shift})) {
    return SaoModuleReference(x, value_weight, w, scale, shift, heads, global_term, residual, valid);
  }
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  return SaoModuleOp().call(x, value_weight, w, scale, shift, heads, global_term, residual, valid);
}

}  // namespace

void CheckSao(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const OptionalTensor& w,
              int64_t heads, const OptionalTensor& valid) {
  CheckInput("sao", "q", q, heads, w, valid);
  for (const auto& [name, tensor] : {std::pair<const char*, const at::Tensor&>{"k", k}, {"v", v}}) {
    CheckDevice("sao", name, tensor, q.device());
    CheckDtype("sao", name, tensor, {q.scalar_type()});
    CheckShape("sao", name, tensor, q.sym_sizes());
  }
}

void CheckSaoModule(const at::Tensor& x, const at::Tensor& value_weight, const OptionalTensor& w,
                    const at::Tensor& scale, const at::Tensor& shift, int64_t heads,
                    const OptionalTensor& valid) {
  constexpr auto kOp = "sao_module";
  CheckInput(kOp, "x", x, heads, w, valid);
  const c10::SymInt channels = x.sym_size(1);
  CheckWeights(kOp, "value_weight", value_weight, x);
  if (value_weight.dim() == 4) {
    CheckShape(kOp, "value_weight", value_weight, {channels, channels, 1, 1});
  } else {
    CheckShape(kOp, "value_weight", value_weight, {channels, channels});
  }
  for (const auto& [name, tensor] : {std::pair<const char*, const at::Tensor&>{"scale", scale},
                                     std::pair<const char*, const at::Tensor&>{"shift", shift}}) {
    CheckWeights(kOp, name, tensor, x);
    CheckShape(kOp, name, tensor, {channels});
  }
}

at::Tensor SaoResult(const at::Tensor& like) {
  return at::empty_like(like, like.options(), like.suggest_memory_format());
}

at::Tensor sao(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const OptionalTensor& w,
               int64_t heads, bool global_term, const OptionalTensor& valid) {
  return SaoOp().call(q, k, v, w, heads, global_term, valid);
}

at::Tensor sao_module(const at::Tensor& x, const at::Tensor& value_weight, const OptionalTensor& w,
                      const at::Tensor& scale, const at::Tensor& shift, int64_t heads, bool global_term,
                      bool residual, const OptionalTensor& valid) {
  return SaoModuleOp().call(x, value_weight, w, scale, shift, heads, global_term, residual, valid);
}

TORCH_LIBRARY_FRAGMENT(saccade, m) {
  m.def(
      "sao(Tensor q, Tensor k, Tensor v, Tensor? w=None, int heads=1, bool global_term=True, "
      "Tensor? valid=None) -> Tensor");
  m.def(
      "sao_module(Tensor x, Tensor value_weight, Tensor? w, Tensor scale, Tensor shift, int heads=4, "
      "bool global_term=True, bool residual=True, Tensor? valid=None) -> Tensor");
}

TORCH_LIBRARY_IMPL(saccade, Autograd, m) {
  m.impl("sao", SaoAutograd);
  m.impl("sao_module", SaoModuleAutograd);
}

}  // namespace saccade::kernels
