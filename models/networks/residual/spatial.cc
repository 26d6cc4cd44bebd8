#include "models/networks/residual/spatial.h"

#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/cat.h>
#include <c10/util/Exception.h>

#include <utility>

#include "kernels/gsa/gsa.h"
#include "models/device/transfer.h"
#include "models/layers/batch_norm.h"
#include "models/layers/position_maps.h"

namespace saccade::models {

SpatialPath::SpatialPath(const SpatialLayer& layer, const ResidualOptions& options, const TensorMap& tensors,
                         bool relu, bool stays_int8)
    : layer_(layer), content_(options.content), heads_(options.heads), relu_(relu), target_(tensors.target) {
  switch (layer.kind) {
    case Spatial::kConvolution:
      convolution_ = NormedConvolution(tensors, layer.name, layer.norm,
                                       {.stride = layer.stride,
                                        // A layer before a sum also has one: it is applied after the sum.
                                        .activation = Activation::kRelu,
                                        .stays_int8 = stays_int8});
      break;
    case Spatial::kExpAtt:
      MakeExpAtt(options, tensors);
      break;
    case Spatial::kGsa:
      MakeGsa(options, tensors);
      break;
  }
}

void SpatialPath::MakeExpAtt(const ResidualOptions& options, const TensorMap& tensors) {
  const Affine affine = FoldBatchNorm(tensors, layer_.norm + ".");
  const int64_t convolved = layer_.outputs - layer_.attended;
  convolution_.emplace(
      tensors.at(layer_.name + ".conv.weight"), PartOf(affine, 0, convolved),
      Placed(tensors, layer_.name + ".conv",
             {.stride = layer_.stride, .activation = relu_ ? Activation::kRelu : Activation::kNone}));
  // The pooling averages, so the batch norm commutes with it and may come first.
  const Affine own = PartOf(affine, convolved, layer_.attended);
  if (options.plus_one && options.shared_map) {
    expatt_.emplace(tensors, layer_.name, own, options.map);
    return;
  }
  variant_.emplace(
      tensors, layer_.name, own,
      ExplicitVariantOptions{
          .map = options.map, .heads = MapsOf(options), .plus_one = options.plus_one, .side = layer_.side});
}

void SpatialPath::FoldTransformNorm(const TensorMap& tensors, const char* part, at::Tensor& weight,
                                    std::optional<at::Tensor>& bias) const {
  const Affine norm = FoldBatchNorm(tensors, layer_.name + part + "_norm.");
  const at::Tensor folded = tensors.at(layer_.name + part + ".weight").flatten(1).to(at::kDouble);
  weight = Owned(folded.mul(norm.scale.unsqueeze(1)), tensors.target);
  bias = Owned(norm.shift, tensors.target);
}

void SpatialPath::MakeGsa(const ResidualOptions& options, const TensorMap& tensors) {
  const auto own = [&](const char* part) { return Owned(tensors.at(layer_.name + part), tensors.target); };
  const Affine affine = FoldBatchNorm(tensors, layer_.norm + ".");
  gsa_.emplace(Gsa{.query_weight = own(".query.weight"),
                   .value_weight = own(".value.weight"),
                   .column_embedding = std::nullopt,
                   .row_embedding = std::nullopt,
                   .key_weight = std::nullopt,
                   .query_bias = std::nullopt,
                   .key_bias = std::nullopt,
                   .value_bias = std::nullopt,
                   .middle_scale = std::nullopt,
                   .middle_shift = std::nullopt,
                   .scale = Owned(affine.scale, tensors.target),
                   .shift = Owned(affine.shift, tensors.target)});
  if (content_ != "none") gsa_->key_weight = own(".key.weight");
  if (AttendsColumns(options)) gsa_->column_embedding = own(".column_embedding");
  if (AttendsRows(options)) gsa_->row_embedding = own(".row_embedding");
  if (AttendsColumns(options) && AttendsRows(options)) {
    const Affine middle = FoldBatchNorm(tensors, layer_.name + ".middle.");
    gsa_->middle_scale = Owned(middle.scale, tensors.target);
    gsa_->middle_shift = Owned(middle.shift, tensors.target);
  }
  if (!options.transform_norms) return;
  FoldTransformNorm(tensors, ".query", gsa_->query_weight, gsa_->query_bias);
  FoldTransformNorm(tensors, ".value", gsa_->value_weight, gsa_->value_bias);
  if (gsa_->key_weight) FoldTransformNorm(tensors, ".key", *gsa_->key_weight, gsa_->key_bias);
}

at::Tensor SpatialPath::Explicit(const at::Tensor& x) const {
  const at::Tensor convolved = (*convolution_)(x);
  at::Tensor attended = expatt_ ? (*expatt_)(x) : (*variant_)(x);
  if (layer_.stride > 1) {
    attended =
        at::avg_pool2d(attended, 3, layer_.stride, 1, /*ceil_mode=*/false, /*count_include_pad=*/false);
  }
  if (relu_) attended.relu_();
  return at::cat({convolved, attended}, 1);
}

at::Tensor SpatialPath::Global(const at::Tensor& x) const {
  ProbeGlobal(layer_.name, x,
              {.content = content_,
               .query_weight = gsa_->query_weight,
               .query_bias = gsa_->query_bias,
               .key_weight = gsa_->key_weight,
               .key_bias = gsa_->key_bias,
               .column_embedding = gsa_->column_embedding,
               .row_embedding = gsa_->row_embedding,
               .heads = heads_});
  at::Tensor y = kernels::gsa_module(x,
                                     {.query_weight = gsa_->query_weight,
                                      .key_weight = gsa_->key_weight,
                                      .value_weight = gsa_->value_weight,
                                      .query_bias = gsa_->query_bias,
                                      .key_bias = gsa_->key_bias,
                                      .value_bias = gsa_->value_bias,
                                      .scale = gsa_->scale,
                                      .shift = gsa_->shift},
                                     {.heads = heads_,
                                      .column_embedding = gsa_->column_embedding,
                                      .row_embedding = gsa_->row_embedding,
                                      .middle_scale = gsa_->middle_scale,
                                      .middle_shift = gsa_->middle_shift,
                                      .content = content_});
  if (layer_.stride > 1) y = at::avg_pool2d(y, layer_.stride, layer_.stride, 0, /*ceil_mode=*/true);
  return relu_ ? y.relu_() : y;
}

at::Tensor SpatialPath::operator()(const at::Tensor& x) const {
  TORCH_INTERNAL_ASSERT(relu_, "a layer that needs a sum was called without one");
  if (expatt_ || variant_) return Explicit(Floats(x, TypeOf(target_)));
  if (gsa_) return Global(Floats(x, TypeOf(target_)));
  return (*convolution_)(x);
}

at::Tensor SpatialPath::AddedTo(at::Tensor other, const at::Tensor& x) const {
  const at::ScalarType type = TypeOf(target_);
  if (expatt_ || variant_) return Floats(other, type).add_(Explicit(Floats(x, type))).relu_();
  if (gsa_) return Floats(other, type).add_(Global(Floats(x, type))).relu_();
  return convolution_->AddedTo(std::move(other), x);
}

}  // namespace saccade::models
