#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/einsum.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/where.h>

#include <limits>

#include "kernels/common/check.h"
#include "kernels/gsa/gsa_impl.h"

namespace saccade::kernels {
namespace {

// [B, heads, C / heads, H, W]
at::Tensor SplitGsaHeads(const at::Tensor& x, int64_t heads) { return x.unflatten(1, {heads, -1}); }

// Masks the logits of padding with a finite number: a softmax over padding alone must not be NaN, because its
// gradients would be NaN even though the result is discarded.
at::Tensor WithoutPadding(const at::Tensor& logits, const at::Tensor& mask) {
  constexpr double kLowest = std::numeric_limits<float>::lowest();
  return at::where(mask, logits, at::scalar_tensor(kLowest, logits.options()));
}

// Equation 4. The mask is [B, 1, H, W], or undefined.
at::Tensor ContentAttention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const at::Tensor& mask) {
  const at::Tensor logits = mask.defined() ? WithoutPadding(k, mask.unsqueeze(1)) : k;
  const at::Tensor weights = logits.flatten(3).softmax(-1);
  const at::Tensor context = at::einsum("bnkp,bnvp->bnkv", {weights, v.flatten(3)});
  return at::einsum("bnkxy,bnkv->bnvxy", {q, context});
}

// Equations 5 to 7 along dimension 3. If k is defined, its scores are added and a softmax is applied.
at::Tensor ColumnAttention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                           const at::Tensor& embedding, const at::Tensor& mask) {
  const c10::SymInt size = q.sym_size(3);
  const at::Tensor index = at::arange(c10::Scalar(size), embedding.options().dtype(at::kLong));
  const at::Tensor shift =
      index.unsqueeze(0) - index.unsqueeze(1) + c10::Scalar((embedding.sym_size(0) - 1) / 2);
  const at::Tensor positions = embedding.index_select(0, shift.flatten()).view_symint({size, size, -1});
  at::Tensor scores = at::einsum("bnkxy,xik->bnyxi", {q, positions});
  if (k.defined()) {
    scores = scores + at::einsum("bnkxy,bnkiy->bnyxi", {q, k});
    if (mask.defined()) scores = WithoutPadding(scores, mask.transpose(2, 3).unsqueeze(3));
    scores = scores.softmax(-1);
  }
  return at::einsum("bnyxi,bnviy->bnvxy", {scores, v});
}

at::Tensor RowAttention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                        const at::Tensor& embedding, const at::Tensor& mask) {
  const auto turned = [](const at::Tensor& t) { return t.defined() ? t.transpose(-2, -1) : t; };
  return turned(ColumnAttention(turned(q), turned(k), turned(v), embedding, turned(mask)));
}

at::Tensor PerChannel(const at::Tensor& x, const OptionalTensor& scale, const OptionalTensor& shift) {
  if (!scale.has_value()) return x;
  const auto wide = [&](const at::Tensor& t) { return t.to(x.scalar_type()).view({-1, 1, 1}); };
  return x * wide(*scale) + wide(*shift);
}

// Expects maps that are already in the accumulation type, with zeros in the padding.
at::Tensor Attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     const GsaAttention& attention, const OptionalTensor& valid) {
  const GsaContent content = ContentOf(attention.content);
  const at::Tensor mask = valid.has_value() ? ValidMask(q, *valid) : at::Tensor();
  const at::Tensor queries = SplitGsaHeads(q, attention.heads);
  const at::Tensor keys = content == GsaContent::kNone ? at::Tensor() : SplitGsaHeads(k, attention.heads);
  const at::Tensor axial_keys = content == GsaContent::kAxial ? keys : at::Tensor();
  at::Tensor positional;
  if (attention.column_embedding.has_value()) {
    positional = ColumnAttention(queries, axial_keys, SplitGsaHeads(v, attention.heads),
                                 attention.column_embedding->to(q.scalar_type()), mask)
                     .flatten(1, 2);
  }
  if (attention.row_embedding.has_value()) {
    const at::Tensor values =
        positional.defined()
            ? Masked(PerChannel(positional, attention.middle_scale, attention.middle_shift), valid)
            : v;
    positional = RowAttention(queries, axial_keys, SplitGsaHeads(values, attention.heads),
                              attention.row_embedding->to(q.scalar_type()), mask)
                     .flatten(1, 2);
  }
  if (content != GsaContent::kGlobal) return positional;
  const at::Tensor global =
      ContentAttention(queries, keys, SplitGsaHeads(v, attention.heads), mask).flatten(1, 2);
  return positional.defined() ? global + positional : global;
}

at::Tensor Project(const at::Tensor& x, const at::Tensor& weight, const OptionalTensor& bias) {
  const at::Tensor y =
      at::einsum("od,bdxy->boxy", {weight.to(x.scalar_type()).view_symint({weight.sym_size(0), -1}), x});
  return bias.has_value() ? y + bias->to(x.scalar_type()).view({-1, 1, 1}) : y;
}

}  // namespace

at::Tensor GsaReference(const at::Tensor& q, const OptionalTensor& k, const at::Tensor& v,
                        const GsaAttention& attention, const OptionalTensor& valid) {
  CheckGsa(q, k, v, attention, valid);
  const auto prepare = [&](const at::Tensor& t) {
    return t.defined() ? Masked(t.to(AccumulateType(q.scalar_type())), valid) : t;
  };
  return MaskedLike(Attention(prepare(q), prepare(TensorOrNone(k)), prepare(v), attention, valid), q, valid);
}

at::Tensor GsaModuleReference(const at::Tensor& x, const GsaWeights& weights, const GsaAttention& attention,
                              const OptionalTensor& valid) {
  CheckGsaModule(x, weights, attention, valid);
  const at::Tensor input = Masked(x.to(AccumulateType(x.scalar_type())), valid);
  const at::Tensor q = Masked(Project(input, weights.query_weight, weights.query_bias), valid);
  const at::Tensor k =
      weights.key_weight.has_value() ? Project(input, *weights.key_weight, weights.key_bias) : at::Tensor();
  const at::Tensor v = Masked(Project(input, weights.value_weight, weights.value_bias), valid);
  return MaskedLike(PerChannel(Attention(q, k, v, attention, valid), weights.scale, weights.shift), x, valid);
}

}  // namespace saccade::kernels
