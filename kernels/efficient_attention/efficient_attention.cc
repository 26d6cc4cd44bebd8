// Schema, argument checks, result shapes without data, and the choice between kernel and differentiable
// reference.
#include "kernels/efficient_attention/efficient_attention.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include "kernels/common/check.h"
#include "kernels/efficient_attention/efficient_attention_impl.h"

namespace saccade::kernels {
namespace {

constexpr auto kAttention = "efficient_attention";
constexpr auto kAttentionModule = "efficient_attention_module";

auto EaOp() {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("saccade::efficient_attention", "")
                             .typed<decltype(efficient_attention)>();
  return op;
}

auto EaModuleOp() {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("saccade::efficient_attention_module", "")
                             .typed<EaModuleSchema>();
  return op;
}

void CheckNormalization(const char* op, std::string_view normalization) {
  TORCH_CHECK(normalization == "softmax" || normalization == "scaling", op,
              ": argument 'normalization' should be softmax or scaling, got '", normalization, "'");
}

void CheckGroups(const char* op, const char* argument, const c10::SymInt& channels, int64_t heads) {
  TORCH_CHECK(channels >= 1 && channels % heads == 0, op, ": argument '", argument,
              "' should give a positive multiple of heads = ", heads, " channels, got ", channels);
}

void CheckBias(const char* argument, const OptionalTensor& bias, const at::Tensor& x,
               const c10::SymInt& size) {
  if (bias.has_value()) CheckVector(kAttentionModule, argument, *bias, x, size);
}

c10::SymInt RowsOf(const char* argument, const at::Tensor& weights) {
  TORCH_CHECK(weights.dim() >= 2, kAttentionModule, ": argument '", argument,
              "' should be a matrix or the weight of a 1x1 convolution, got shape ", weights.sym_sizes());
  return weights.sym_size(0);
}

at::Tensor EaAutograd(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t heads,
                      std::string_view normalization, const OptionalTensor& valid) {
  if (NeedsDerivative({q, k, v})) return EaReference(q, k, v, heads, normalization, valid);
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  return EaOp().call(q, k, v, heads, normalization, valid);
}

at::Tensor CallModule(const at::Tensor& x, const EaWeights& w, int64_t heads, std::string_view normalization,
                      bool residual, const OptionalTensor& valid) {
  return EaModuleOp().call(x, w.key_weight, w.query_weight, w.value_weight, w.key_bias, w.query_bias,
                           w.value_bias, w.out_weight, w.out_bias, heads, normalization, residual, valid);
}

at::Tensor EaModuleAutograd(const at::Tensor& x, const EaWeights& w, int64_t heads,
                            std::string_view normalization, bool residual, const OptionalTensor& valid) {
  if (NeedsDerivative({x, w.key_weight, w.query_weight, w.value_weight, TensorOrNone(w.key_bias),
                       TensorOrNone(w.query_bias), TensorOrNone(w.value_bias), TensorOrNone(w.out_weight),
                       TensorOrNone(w.out_bias)})) {
    return EaModuleReference(x, w, heads, normalization, residual, valid);
  }
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  return CallModule(x, w, heads, normalization, residual, valid);
}

at::Tensor EaMeta(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t heads,
                  std::string_view normalization, const OptionalTensor& valid) {
  CheckEa(q, k, v, heads, normalization, valid);
  return ResultLike(q, v.sym_size(1));
}

at::Tensor EaModuleMeta(const at::Tensor& x, const EaWeights& weights, int64_t heads,
                        std::string_view normalization, bool residual, const OptionalTensor& valid) {
  CheckEaModule(x, weights, heads, normalization, residual, valid);
  return ResultLike(x, EaOutChannels(weights));
}

}  // namespace

void CheckEa(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t heads,
             std::string_view normalization, const OptionalTensor& valid) {
  CheckInputMap(kAttention, "q", q, heads);
  CheckSameMap(kAttention, "k", k, q, q.sym_size(1));
  CheckFeatureMap(kAttention, "v", v, heads);
  CheckSameMap(kAttention, "v", v, q, v.sym_size(1));
  CheckNormalization(kAttention, normalization);
  CheckValid(kAttention, valid, q);
}

c10::SymInt EaOutChannels(const EaWeights& weights) {
  return weights.out_weight.has_value() ? weights.out_weight->sym_size(0) : weights.value_weight.sym_size(0);
}

void CheckEaModule(const at::Tensor& x, const EaWeights& weights, int64_t heads,
                   std::string_view normalization, bool residual, const OptionalTensor& valid) {
  CheckInputMap(kAttentionModule, "x", x, 1);
  TORCH_CHECK(heads >= 1, kAttentionModule, ": argument 'heads' should be at least 1, got ", heads);
  const c10::SymInt channels = x.sym_size(1);
  const c10::SymInt key_channels = RowsOf("key_weight", weights.key_weight);
  const c10::SymInt value_channels = RowsOf("value_weight", weights.value_weight);
  CheckGroups(kAttentionModule, "key_weight", key_channels, heads);
  CheckGroups(kAttentionModule, "value_weight", value_channels, heads);
  CheckMatrix(kAttentionModule, "key_weight", weights.key_weight, x, key_channels, channels);
  CheckMatrix(kAttentionModule, "query_weight", weights.query_weight, x, key_channels, channels);
  CheckMatrix(kAttentionModule, "value_weight", weights.value_weight, x, value_channels, channels);
  CheckBias("key_bias", weights.key_bias, x, key_channels);
  CheckBias("query_bias", weights.query_bias, x, key_channels);
  CheckBias("value_bias", weights.value_bias, x, value_channels);
  if (weights.out_weight.has_value()) {
    CheckMatrix(kAttentionModule, "out_weight", *weights.out_weight, x,
                RowsOf("out_weight", *weights.out_weight), value_channels);
  }
  TORCH_CHECK(weights.out_weight.has_value() || !weights.out_bias.has_value(), kAttentionModule,
              ": argument 'out_bias' should be given only together with 'out_weight', got only the bias");
  const c10::SymInt out_channels = EaOutChannels(weights);
  TORCH_CHECK(out_channels >= 1, kAttentionModule,
              ": argument 'out_weight' should have at least one row, got ", out_channels);
  CheckBias("out_bias", weights.out_bias, x, out_channels);
  TORCH_CHECK(!residual || out_channels == channels, kAttentionModule,
              ": argument 'residual' requires a result with as many channels as x: expected ", channels,
              ", got ", out_channels);
  CheckNormalization(kAttentionModule, normalization);
  CheckValid(kAttentionModule, valid, x);
}

at::Tensor efficient_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t heads,
                               std::string_view normalization, const OptionalTensor& valid) {
  return EaOp().call(q, k, v, heads, normalization, valid);
}

at::Tensor efficient_attention_module(const at::Tensor& x, const EaWeights& weights, int64_t heads,
                                      std::string_view normalization, bool residual,
                                      const OptionalTensor& valid) {
  return CallModule(x, weights, heads, normalization, residual, valid);
}

TORCH_LIBRARY_FRAGMENT(saccade, m) {
  m.def(
      "efficient_attention(Tensor q, Tensor k, Tensor v, int heads=1, str normalization='softmax', "
      "Tensor? valid=None) -> Tensor");
  m.def(
      "efficient_attention_module(Tensor x, Tensor key_weight, Tensor query_weight, Tensor value_weight, "
      "Tensor? key_bias=None, Tensor? query_bias=None, Tensor? value_bias=None, Tensor? out_weight=None, "
      "Tensor? out_bias=None, int heads=1, str normalization='softmax', bool residual=True, "
      "Tensor? valid=None) -> Tensor");
}

TORCH_LIBRARY_IMPL(saccade, Autograd, m) {
  m.impl("efficient_attention", EaAutograd);
  m.impl("efficient_attention_module", EaModuleAs<EaModuleAutograd>);
}

TORCH_LIBRARY_IMPL(saccade, Meta, m) {
  m.impl("efficient_attention", EaMeta);
  m.impl("efficient_attention_module", EaModuleAs<EaModuleMeta>);
}

}  // namespace saccade::kernels
