// Schema, argument checks, and the choice between kernel and differentiable reference.
#include "kernels/attention/attention.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include <cmath>

#include "kernels/attention/attention_impl.h"
#include "kernels/common/check.h"

namespace saccade::kernels {
namespace {

constexpr auto kSoftmaxModule = "attention_module";

auto AttentionOp() {
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("saccade::attention", "").typed<decltype(attention)>();
  return op;
}

auto Attention1nOp() {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("saccade::attention_1n", "")
                             .typed<decltype(attention_1n)>();
  return op;
}

auto AttentionModuleOp() {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("saccade::attention_module", "")
                             .typed<AttentionModuleSchema>();
  return op;
}

const char* NameOf(AttentionKind kind) {
  return kind == AttentionKind::kSoftmax ? "softmax" : kind == AttentionKind::kPooled ? "pool" : "1n";
}

at::Tensor CallModule(const at::Tensor& x, std::string_view kind, const AttentionWeights& w, int64_t heads,
                      double logit_scale, bool residual, const OptionalTensor& valid) {
  return AttentionModuleOp().call(x, kind, w.query_weight, w.key_weight, w.value_weight, w.query_bias,
                                  w.key_bias, w.value_bias, w.out_weight, w.scale, w.shift, heads,
                                  logit_scale, residual, valid);
}

at::Tensor AttentionAutograd(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t heads,
                             double scale, bool pool, const OptionalTensor& valid) {
  if (NeedsDerivative({q, k, v})) {
    CheckAttention("attention", q, k, v, heads, scale, valid);
    return AttentionReference(q, k, v, heads, scale, pool ? AttentionKind::kPooled : AttentionKind::kSoftmax,
                              valid);
  }
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  return AttentionOp().call(q, k, v, heads, scale, pool, valid);
}

at::Tensor Attention1nAutograd(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t heads,
                               const OptionalTensor& valid) {
  if (NeedsDerivative({q, k, v})) {
    CheckAttention("attention_1n", q, k, v, heads, 1, valid);
    return AttentionReference(q, k, v, heads, 1, AttentionKind::kMean, valid);
  }
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  return Attention1nOp().call(q, k, v, heads, valid);
}

at::Tensor ModuleAutograd(const at::Tensor& x, AttentionKind kind, const AttentionWeights& w, int64_t heads,
                          double logit_scale, bool residual, const OptionalTensor& valid) {
  if (NeedsDerivative({x, TensorOrNone(w.query_weight), TensorOrNone(w.key_weight),
                       TensorOrNone(w.value_weight), TensorOrNone(w.query_bias), TensorOrNone(w.key_bias),
                       TensorOrNone(w.value_bias), TensorOrNone(w.out_weight), TensorOrNone(w.scale),
                       TensorOrNone(w.shift)})) {
    return AttentionModuleReference(x, kind, w, heads, logit_scale, residual, valid);
  }
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  return CallModule(x, NameOf(kind), w, heads, logit_scale, residual, valid);
}

// Returns the rows of a transform: those of its weight, or the map's channels if there is no weight.
c10::SymInt TransformedChannels(const char* name, const OptionalTensor& weight, const at::Tensor& x) {
  if (!weight.has_value()) return x.sym_size(1);
  TORCH_CHECK(weight->dim() >= 2, kSoftmaxModule, ": argument '", name, "' should be a matrix with ",
              x.sym_size(1), " columns, got ", weight->sym_sizes());
  return weight->sym_size(0);
}

void CheckTransform(const char* weight_name, const char* bias_name, const OptionalTensor& weight,
                    const OptionalTensor& bias, const at::Tensor& x, const c10::SymInt& rows, int64_t heads) {
  if (weight.has_value()) CheckMatrix(kSoftmaxModule, weight_name, *weight, x, rows, x.sym_size(1));
  TORCH_CHECK(rows >= 1 && rows % heads == 0, kSoftmaxModule, ": argument '", weight_name,
              "' should have a positive multiple of heads = ", heads, " rows, got ", rows);
  if (!bias.has_value()) return;
  TORCH_CHECK(weight.has_value(), kSoftmaxModule, ": argument '", bias_name,
              "' should be given only together with '", weight_name, "', got only the bias");
  CheckVector(kSoftmaxModule, bias_name, *bias, x, rows);
}

void CheckScale(const char* op, const char* argument, double scale) {
  TORCH_CHECK(std::isfinite(scale), op, ": argument '", argument, "' should be finite, got ", scale);
}

}  // namespace

AttentionKind AttentionKindOf(std::string_view kind) {
  if (kind == "softmax") return AttentionKind::kSoftmax;
  if (kind == "pool") return AttentionKind::kPooled;
  TORCH_CHECK(kind == "1n", kSoftmaxModule, ": argument 'kind' should be 'softmax', 'pool' or '1n', got '",
              kind, "'");
  return AttentionKind::kMean;
}

void CheckAttention(const char* op, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                    int64_t heads, double scale, const OptionalTensor& valid) {
  CheckInputMap(op, "q", q, heads);
  CheckInputMap(op, "v", v, heads);
  CheckSameMap(op, "k", k, q, q.sym_size(1));
  CheckSameMap(op, "v", v, q, v.sym_size(1));
  CheckScale(op, "scale", scale);
  CheckValid(op, valid, q);
}

AttentionShape CheckAttentionModule(const at::Tensor& x, AttentionKind kind, const AttentionWeights& w,
                                    int64_t heads, double logit_scale, bool residual,
                                    const OptionalTensor& valid) {
  CheckInputMap(kSoftmaxModule, "x", x, 1);
  TORCH_CHECK(heads >= 1, kSoftmaxModule, ": argument 'heads' should be at least 1, got ", heads);
  AttentionShape shape;
  shape.key_channels = TransformedChannels("query_weight", w.query_weight, x);
  shape.value_channels = TransformedChannels("value_weight", w.value_weight, x);
  CheckTransform("query_weight", "query_bias", w.query_weight, w.query_bias, x, shape.key_channels, heads);
  if (!w.key_weight.has_value()) {
    TORCH_CHECK(shape.key_channels == x.sym_size(1), kSoftmaxModule, ": argument 'query_weight' should have ",
                x.sym_size(1), " rows if 'key_weight' is not given, got ", shape.key_channels);
  }
  CheckTransform("key_weight", "key_bias", w.key_weight, w.key_bias, x, shape.key_channels, heads);
  CheckTransform("value_weight", "value_bias", w.value_weight, w.value_bias, x, shape.value_channels, heads);

  shape.out_channels = shape.value_channels;
  if (w.out_weight.has_value()) {
    shape.out_channels = TransformedChannels("out_weight", w.out_weight, x);
    CheckMatrix(kSoftmaxModule, "out_weight", *w.out_weight, x, shape.out_channels, shape.value_channels);
  }
  if (w.scale.has_value()) CheckVector(kSoftmaxModule, "scale", *w.scale, x, shape.out_channels);
  if (w.shift.has_value()) CheckVector(kSoftmaxModule, "shift", *w.shift, x, shape.out_channels);
  TORCH_CHECK(!residual || shape.out_channels == x.sym_size(1), kSoftmaxModule,
              ": argument 'residual' should be false if the number of result channels differs from x's ",
              x.sym_size(1), ", got true with ", shape.out_channels);
  CheckScale(kSoftmaxModule, "logit_scale", logit_scale);
  TORCH_CHECK(kind != AttentionKind::kMean || logit_scale == 1, kSoftmaxModule,
              ": argument 'logit_scale' should be 1 for kind '1n', got ", logit_scale);
  CheckValid(kSoftmaxModule, valid, x);
  return shape;
}

at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t heads,
                     double scale, bool pool, const OptionalTensor& valid) {
  return AttentionOp().call(q, k, v, heads, scale, pool, valid);
}

at::Tensor attention_1n(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t heads,
                        const OptionalTensor& valid) {
  return Attention1nOp().call(q, k, v, heads, valid);
}

at::Tensor attention_module(const at::Tensor& x, const std::string& kind, const AttentionWeights& weights,
                            int64_t heads, double logit_scale, bool residual, const OptionalTensor& valid) {
  return CallModule(x, kind, weights, heads, logit_scale, residual, valid);
}

TORCH_LIBRARY_FRAGMENT(saccade, m) {
  m.def(
      "attention(Tensor q, Tensor k, Tensor v, int heads=1, float scale=1.0, bool pool=False, "
      "Tensor? valid=None) -> Tensor");
  m.def("attention_1n(Tensor q, Tensor k, Tensor v, int heads=1, Tensor? valid=None) -> Tensor");
  m.def(
      "attention_module(Tensor x, str kind, Tensor? query_weight=None, Tensor? key_weight=None, "
      "Tensor? value_weight=None, Tensor? query_bias=None, Tensor? key_bias=None, Tensor? value_bias=None, "
      "Tensor? out_weight=None, Tensor? scale=None, Tensor? shift=None, int heads=1, float logit_scale=1.0, "
      "bool residual=True, Tensor? valid=None) -> Tensor");
}

TORCH_LIBRARY_IMPL(saccade, Autograd, m) {
  m.impl("attention", AttentionAutograd);
  m.impl("attention_1n", Attention1nAutograd);
  m.impl("attention_module", AttentionModuleAs<ModuleAutograd>);
}

}  // namespace saccade::kernels
