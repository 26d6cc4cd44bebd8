// Schema, argument checks, result shapes without data, and the choice between kernel and differentiable
// reference.
#include "kernels/gsa/gsa.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include "kernels/common/check.h"
#include "kernels/gsa/gsa_impl.h"

namespace saccade::kernels {
namespace {

constexpr auto kGsa = "gsa";
constexpr auto kGsaModule = "gsa_module";

auto GsaOp() {
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("saccade::gsa", "").typed<GsaSchema>();
  return op;
}

auto GsaModuleOp() {
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("saccade::gsa_module", "").typed<GsaModuleSchema>();
  return op;
}

void CheckPair(const char* op, const char* first, const OptionalTensor& a, const char* second,
               const OptionalTensor& b, const at::Tensor& x, const c10::SymInt& size) {
  TORCH_CHECK(a.has_value() == b.has_value(), op, ": arguments '", first, "' and '", second,
              "' should be given both or neither, got only '", a.has_value() ? first : second, "'");
  if (!a.has_value()) return;
  CheckVector(op, first, *a, x, size);
  CheckVector(op, second, *b, x, size);
}

// `size` is the extent of the map along the embedding's axis.
void CheckEmbedding(const char* op, const char* argument, const OptionalTensor& embedding,
                    const at::Tensor& x, const c10::SymInt& size, const c10::SymInt& channels) {
  if (!embedding.has_value()) return;
  TORCH_CHECK(embedding->dim() == 2 && embedding->sym_size(1) == channels && embedding->sym_size(0) % 2 == 1,
              op, ": argument '", argument, "' should be [2 L - 1, ", channels,
              "], an odd number of rows, got ", embedding->sym_sizes());
  CheckWeights(op, argument, *embedding, x, {embedding->sym_sizes()});
  const c10::SymInt reach = (embedding->sym_size(0) + 1) / 2;
  TORCH_CHECK(reach >= size, op, ": argument '", argument, "' should have at least ", size * 2 - 1,
              " rows to reach across a map of ", size, ", got ", embedding->sym_size(0),
              " rows, which reach across ", reach);
}

// `value_channels` is the number of channels of the result.
void CheckAttention(const char* op, const at::Tensor& x, const GsaAttention& attention,
                    const c10::SymInt& key_channels, const c10::SymInt& value_channels) {
  const auto& [heads, column, row, middle_scale, middle_shift, content] = attention;
  TORCH_CHECK(content == "global" || content == "axial" || content == "none", op,
              ": argument 'content' should be global, axial or none, got '", content, "'");
  CheckEmbedding(op, "column_embedding", column, x, x.sym_size(2), key_channels / heads);
  CheckEmbedding(op, "row_embedding", row, x, x.sym_size(3), key_channels / heads);
  TORCH_CHECK(content != "none" || column.has_value() || row.has_value(), op,
              ": argument 'content' should not be none without column_embedding or row_embedding, because no "
              "attention would "
              "remain");
  TORCH_CHECK(content != "axial" || (column.has_value() && row.has_value()), op,
              ": argument 'content' should be axial only with column_embedding and row_embedding, got ",
              column.has_value() ? "only column_embedding"
              : row.has_value()  ? "only row_embedding"
                                 : "neither");
  CheckPair(op, "middle_scale", middle_scale, "middle_shift", middle_shift, x, value_channels);
  TORCH_CHECK(!middle_scale.has_value() || (column.has_value() && row.has_value()), op,
              ": argument 'middle_scale' should be given only with both column_embedding and row_embedding, "
              "got ",
              column.has_value() || row.has_value() ? "one of them" : "neither");
}

void CheckGroups(const char* argument, const at::Tensor& weight, int64_t heads) {
  TORCH_CHECK(weight.dim() >= 2, kGsaModule, ": argument '", argument,
              "' should be a matrix or the weight of a 1x1 convolution, got shape ", weight.sym_sizes());
  TORCH_CHECK(weight.sym_size(0) >= 1 && weight.sym_size(0) % heads == 0, kGsaModule, ": argument '",
              argument, "' should have a positive multiple of heads = ", heads, " rows, got ",
              weight.sym_sizes());
}

void CheckBias(const char* argument, const OptionalTensor& bias, const at::Tensor& x,
               const c10::SymInt& size) {
  if (bias.has_value()) CheckVector(kGsaModule, argument, *bias, x, size);
}

at::Tensor CallGsa(const at::Tensor& q, const OptionalTensor& k, const at::Tensor& v, const GsaAttention& a,
                   const OptionalTensor& valid) {
  return GsaOp().call(q, k, v, a.heads, a.column_embedding, a.row_embedding, a.middle_scale, a.middle_shift,
                      a.content, valid);
}

at::Tensor CallModule(const at::Tensor& x, const GsaWeights& w, const GsaAttention& a,
                      const OptionalTensor& valid) {
  return GsaModuleOp().call(x, w.query_weight, w.key_weight, w.value_weight, w.query_bias, w.key_bias,
                            w.value_bias, a.heads, a.column_embedding, a.row_embedding, a.middle_scale,
                            a.middle_shift, w.scale, w.shift, a.content, valid);
}

at::Tensor GsaAutograd(const at::Tensor& q, const OptionalTensor& k, const at::Tensor& v,
                       const GsaAttention& a, const OptionalTensor& valid) {
  if (NeedsDerivative({q, TensorOrNone(k), v, TensorOrNone(a.column_embedding), TensorOrNone(a.row_embedding),
                       TensorOrNone(a.middle_scale), TensorOrNone(a.middle_shift)})) {
    return GsaReference(q, k, v, a, valid);
  }
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  return CallGsa(q, k, v, a, valid);
}

at::Tensor GsaModuleAutograd(const at::Tensor& x, const GsaWeights& w, const GsaAttention& a,
                             const OptionalTensor& valid) {
  if (NeedsDerivative({x, w.query_weight, TensorOrNone(w.key_weight), w.value_weight,
                       TensorOrNone(w.query_bias), TensorOrNone(w.key_bias), TensorOrNone(w.value_bias),
                       TensorOrNone(a.column_embedding), TensorOrNone(a.row_embedding),
                       TensorOrNone(a.middle_scale), TensorOrNone(a.middle_shift), TensorOrNone(w.scale),
                       TensorOrNone(w.shift)})) {
    return GsaModuleReference(x, w, a, valid);
  }
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  return CallModule(x, w, a, valid);
}

at::Tensor GsaMeta(const at::Tensor& q, const OptionalTensor& k, const at::Tensor& v,
                   const GsaAttention& attention, const OptionalTensor& valid) {
  CheckGsa(q, k, v, attention, valid);
  return ResultLike(q, v.sym_size(1));
}

at::Tensor GsaModuleMeta(const at::Tensor& x, const GsaWeights& weights, const GsaAttention& attention,
                         const OptionalTensor& valid) {
  CheckGsaModule(x, weights, attention, valid);
  return ResultLike(x, weights.value_weight.sym_size(0));
}

}  // namespace

GsaContent ContentOf(std::string_view content) {
  return content == "none"    ? GsaContent::kNone
         : content == "axial" ? GsaContent::kAxial
                              : GsaContent::kGlobal;
}

void CheckGsa(const at::Tensor& q, const OptionalTensor& k, const at::Tensor& v,
              const GsaAttention& attention, const OptionalTensor& valid) {
  CheckPicture(kGsa, "q", q, attention.heads);
  CheckPicture(kGsa, "v", v, attention.heads);
  CheckSameMap(kGsa, "v", v, q, v.sym_size(1));
  if (k.has_value()) CheckSameMap(kGsa, "k", *k, q, q.sym_size(1));
  CheckAttention(kGsa, q, attention, q.sym_size(1), v.sym_size(1));
  TORCH_CHECK(k.has_value() || attention.content == "none", kGsa,
              ": argument 'k' should be given with content = ", attention.content, ", got none");
  CheckValid(kGsa, valid, q);
}

void CheckGsaModule(const at::Tensor& x, const GsaWeights& weights, const GsaAttention& attention,
                    const OptionalTensor& valid) {
  CheckPicture(kGsaModule, "x", x, 1);
  TORCH_CHECK(attention.heads >= 1, kGsaModule, ": argument 'heads' should be at least 1, got ",
              attention.heads);
  CheckGroups("query_weight", weights.query_weight, attention.heads);
  CheckGroups("value_weight", weights.value_weight, attention.heads);
  const c10::SymInt channels = x.sym_size(1);
  const c10::SymInt key_channels = weights.query_weight.sym_size(0);
  const c10::SymInt value_channels = weights.value_weight.sym_size(0);
  CheckMatrix(kGsaModule, "query_weight", weights.query_weight, x, key_channels, channels);
  if (weights.key_weight.has_value())
    CheckMatrix(kGsaModule, "key_weight", *weights.key_weight, x, key_channels, channels);
  CheckMatrix(kGsaModule, "value_weight", weights.value_weight, x, value_channels, channels);
  CheckBias("query_bias", weights.query_bias, x, key_channels);
  CheckBias("key_bias", weights.key_bias, x, key_channels);
  CheckBias("value_bias", weights.value_bias, x, value_channels);
  CheckAttention(kGsaModule, x, attention, key_channels, value_channels);
  TORCH_CHECK(weights.key_weight.has_value() || attention.content == "none", kGsaModule,
              ": argument 'key_weight' should be given with content = ", attention.content, ", got none");
  CheckPair(kGsaModule, "scale", weights.scale, "shift", weights.shift, x, value_channels);
  CheckValid(kGsaModule, valid, x);
}

at::Tensor gsa(const at::Tensor& q, const OptionalTensor& k, const at::Tensor& v,
               const GsaAttention& attention, const OptionalTensor& valid) {
  return CallGsa(q, k, v, attention, valid);
}

at::Tensor gsa_module(const at::Tensor& x, const GsaWeights& weights, const GsaAttention& attention,
                      const OptionalTensor& valid) {
  return CallModule(x, weights, attention, valid);
}

TORCH_LIBRARY_FRAGMENT(saccade, m) {
  m.def(
      "gsa(Tensor q, Tensor? k, Tensor v, int heads, Tensor? column_embedding=None, Tensor? "
      "row_embedding=None, "
      "Tensor? middle_scale=None, Tensor? middle_shift=None, str content='global', Tensor? valid=None) -> "
      "Tensor");
  m.def(
      "gsa_module(Tensor x, Tensor query_weight, Tensor? key_weight, Tensor value_weight, Tensor? "
      "query_bias, "
      "Tensor? key_bias, Tensor? value_bias, int heads, Tensor? column_embedding, Tensor? row_embedding, "
      "Tensor? middle_scale, Tensor? middle_shift, Tensor? scale, Tensor? shift, str content='global', "
      "Tensor? valid=None) -> Tensor");
}

TORCH_LIBRARY_IMPL(saccade, Autograd, m) {
  m.impl("gsa", GsaAs<GsaAutograd>);
  m.impl("gsa_module", GsaModuleAs<GsaModuleAutograd>);
}

TORCH_LIBRARY_IMPL(saccade, Meta, m) {
  m.impl("gsa", GsaAs<GsaMeta>);
  m.impl("gsa_module", GsaModuleAs<GsaModuleMeta>);
}

}  // namespace saccade::kernels
