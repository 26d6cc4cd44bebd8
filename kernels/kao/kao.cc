// Schema, argument checks, result shapes, and the choice between kernel and differentiable reference.
#include "kernels/kao/kao.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include "kernels/common/check.h"
#include "kernels/kao/kao_impl.h"

namespace saccade::kernels {
namespace {

constexpr auto kKaoModule = "kao_module";

// Returns the rows of a matrix that is not checked yet.
c10::SymInt RowsOf(const char* argument, const at::Tensor& weights) {
  TORCH_CHECK(weights.dim() >= 2, kKaoModule, ": argument '", argument, "' should be a matrix, got shape ",
              weights.sym_sizes());
  return weights.sym_size(0);
}

void CheckGroups(const KaoModuleArguments& a, const char* argument, const OptionalTensor& weights,
                 const c10::SymInt& channels) {
  const bool fits = channels >= 1 && channels % a.heads == 0;
  if (weights.has_value()) {
    TORCH_CHECK(fits, kKaoModule, ": argument '", argument,
                "' should have a positive multiple of heads = ", a.heads, " rows, got ",
                weights->sym_sizes());
  } else {
    TORCH_CHECK(fits, kKaoModule, ": argument 'x' should have a positive multiple of heads = ", a.heads,
                " channels without '", argument, "', got ", a.x.sym_sizes());
  }
}

KaoKind KindOf(std::string_view kind) {
  TORCH_CHECK(kind == "kv" || kind == "qkv", kKaoModule, ": argument 'kind' should be 'kv' or 'qkv', got '",
              kind, "'");
  return kind == "kv" ? KaoKind::kMapQueries : KaoKind::kAverageQueries;
}

template <KaoKind kKind>
auto KaoOp() {
  static const auto op =
      c10::Dispatcher::singleton()
          .findSchemaOrThrow(kKind == KaoKind::kMapQueries ? "saccade::kao_kv" : "saccade::kao_qkv", "")
          .typed<decltype(kao_kv)>();
  return op;
}

auto KaoModuleOp() {
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("saccade::kao_module", "").typed<KaoModuleSchema>();
  return op;
}

at::Tensor KaoAutograd(KaoKind kind, const KaoArguments& a) {
  if (NeedsDerivative({a.q, a.k, a.v, TensorOrNone(a.coefficient_scale)})) return KaoReference(kind, a);
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const auto op =
      kind == KaoKind::kMapQueries ? KaoOp<KaoKind::kMapQueries>() : KaoOp<KaoKind::kAverageQueries>();
  return op.call(a.q, a.k, a.v, a.heads, a.coefficient_scale, a.valid);
}

at::Tensor CallModule(const KaoModuleArguments& a) {
  const KaoWeights& w = a.weights;
  return KaoModuleOp().call(a.x, a.kind, w.query_weight, w.key_weight, w.value_weight, w.query_bias,
                            w.value_bias, w.coefficient_scale, w.scale, w.shift, a.heads, a.residual,
                            a.valid);
}

at::Tensor KaoModuleAutograd(const KaoModuleArguments& a) {
  const KaoWeights& w = a.weights;
  if (NeedsDerivative({a.x, TensorOrNone(w.query_weight), TensorOrNone(w.key_weight),
                       TensorOrNone(w.value_weight), TensorOrNone(w.query_bias), TensorOrNone(w.value_bias),
                       TensorOrNone(w.coefficient_scale), TensorOrNone(w.scale), TensorOrNone(w.shift)})) {
    return KaoModuleReference(a);
  }
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  return CallModule(a);
}

// Result shapes without data, for torch.compile, fake tensors and export.
at::Tensor KaoMeta(KaoKind kind, const KaoArguments& a) {
  CheckKao(kind, a);
  return ResultLike(a.q, a.v.sym_size(1));
}

at::Tensor KaoModuleMeta(const KaoModuleArguments& a) {
  CheckKaoModule(a);
  return ResultLike(a.x, ValueChannels(a));
}

}  // namespace

const char* KaoName(KaoKind kind) { return kind == KaoKind::kMapQueries ? "kao_kv" : "kao_qkv"; }

void CheckKao(KaoKind kind, const KaoArguments& a) {
  const char* op = KaoName(kind);
  CheckPicture(op, "q", a.q, a.heads);
  CheckSameMap(op, "k", a.k, a.q, a.q.sym_size(1));
  CheckPicture(op, "v", a.v, a.heads);
  CheckSameMap(op, "v", a.v, a.q, a.v.sym_size(1));
  if (a.coefficient_scale.has_value())
    CheckVector(op, "coefficient_scale", *a.coefficient_scale, a.q, a.heads);
  CheckValid(op, a.valid, a.q);
}

c10::SymInt KeyChannels(const KaoModuleArguments& a) {
  // If one of the two is the identity, Ck = C.
  if (a.weights.query_weight.has_value() && a.weights.key_weight.has_value())
    return RowsOf("query_weight", *a.weights.query_weight);
  return a.x.sym_size(1);
}

c10::SymInt ValueChannels(const KaoModuleArguments& a) {
  return a.weights.value_weight.has_value() ? RowsOf("value_weight", *a.weights.value_weight)
                                            : a.x.sym_size(1);
}

KaoKind CheckKaoModule(const KaoModuleArguments& a) {
  const KaoKind kind = KindOf(a.kind);
  CheckPicture(kKaoModule, "x", a.x, 1);
  TORCH_CHECK(a.heads >= 1, kKaoModule, ": argument 'heads' should be at least 1, got ", a.heads);
  const c10::SymInt channels = a.x.sym_size(1);
  const c10::SymInt key_channels = KeyChannels(a);
  const c10::SymInt value_channels = ValueChannels(a);
  CheckGroups(a, "query_weight", a.weights.query_weight, key_channels);
  CheckGroups(a, "value_weight", a.weights.value_weight, value_channels);
  const auto check_matrix = [&](const char* argument, const OptionalTensor& weights,
                                const c10::SymInt& rows) {
    if (weights.has_value()) CheckMatrix(kKaoModule, argument, *weights, a.x, rows, channels);
  };
  const auto check_vector = [&](const char* argument, const OptionalTensor& weights,
                                const c10::SymInt& size) {
    if (weights.has_value()) CheckVector(kKaoModule, argument, *weights, a.x, size);
  };
  check_matrix("query_weight", a.weights.query_weight, key_channels);
  check_matrix("key_weight", a.weights.key_weight, key_channels);
  check_matrix("value_weight", a.weights.value_weight, value_channels);
  check_vector("query_bias", a.weights.query_bias, key_channels);
  check_vector("value_bias", a.weights.value_bias, value_channels);
  check_vector("coefficient_scale", a.weights.coefficient_scale, a.heads);
  check_vector("scale", a.weights.scale, value_channels);
  check_vector("shift", a.weights.shift, value_channels);
  TORCH_CHECK(!a.residual || value_channels == channels, kKaoModule,
              ": argument 'residual' should be false if 'value_weight' gives ", value_channels,
              " channels for an input of ", channels, ", got true");
  CheckValid(kKaoModule, a.valid, a.x);
  return kind;
}

at::Tensor kao_kv(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t heads,
                  const OptionalTensor& coefficient_scale, const OptionalTensor& valid) {
  return KaoOp<KaoKind::kMapQueries>().call(q, k, v, heads, coefficient_scale, valid);
}

at::Tensor kao_qkv(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t heads,
                   const OptionalTensor& coefficient_scale, const OptionalTensor& valid) {
  return KaoOp<KaoKind::kAverageQueries>().call(q, k, v, heads, coefficient_scale, valid);
}

at::Tensor kao_module(const at::Tensor& x, std::string_view kind, const KaoWeights& weights, int64_t heads,
                      bool residual, const OptionalTensor& valid) {
  return CallModule({x, kind, weights, heads, residual, valid});
}

TORCH_LIBRARY_FRAGMENT(saccade, m) {
  m.def(
      "kao_kv(Tensor q, Tensor k, Tensor v, int heads=1, Tensor? coefficient_scale=None, Tensor? valid=None) "
      "-> Tensor");
  m.def(
      "kao_qkv(Tensor q, Tensor k, Tensor v, int heads=1, Tensor? coefficient_scale=None, Tensor? "
      "valid=None) "
      "-> Tensor");
  m.def(
      "kao_module(Tensor x, str kind, Tensor? query_weight=None, Tensor? key_weight=None, "
      "Tensor? value_weight=None, Tensor? query_bias=None, Tensor? value_bias=None, "
      "Tensor? coefficient_scale=None, Tensor? scale=None, Tensor? shift=None, int heads=1, bool "
      "residual=True, "
      "Tensor? valid=None) -> Tensor");
}

TORCH_LIBRARY_IMPL(saccade, Autograd, m) {
  m.impl("kao_kv", KaoAs<KaoKind::kMapQueries, KaoAutograd>);
  m.impl("kao_qkv", KaoAs<KaoKind::kAverageQueries, KaoAutograd>);
  m.impl("kao_module", KaoModuleAs<KaoModuleAutograd>);
}

TORCH_LIBRARY_IMPL(saccade, Meta, m) {
  m.impl("kao_kv", KaoAs<KaoKind::kMapQueries, KaoMeta>);
  m.impl("kao_qkv", KaoAs<KaoKind::kAverageQueries, KaoMeta>);
  m.impl("kao_module", KaoModuleAs<KaoModuleMeta>);
}

}  // namespace saccade::kernels
