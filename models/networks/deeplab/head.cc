#include "models/networks/deeplab/head.h"

#include <ATen/ops/cat.h>

#include "kernels/kao/kao.h"
#include "models/device/transfer.h"
#include "models/layers/attention_maps.h"
#include "models/layers/position_maps.h"
#include "models/networks/deeplab/table.h"

namespace saccade::models {
namespace {

std::string KindOf(const DeepLabOptions& options) {
  if (options.head == DeepLabHead::kKao) return options.kao;
  return options.head == DeepLabHead::kAttentionPool ? "pool" : "softmax";
}

// Multiplies the rows of each head, in a matrix or a bias, by the head's entry of `scale`.
at::Tensor ScaleHeads(const at::Tensor& rows, const at::Tensor& scale) {
  RefuseQuantized(rows);
  const at::Tensor each = scale.repeat_interleave(rows.size(0) / scale.size(0));
  return rows.to(at::kDouble).flatten(1).mul(each.unsqueeze(1));
}

}  // namespace

AsppHead::AsppHead(const TensorMap& tensors) {
  int index = 0;
  for (const int64_t dilation : kAsppDilations) {
    convolutions_.push_back(
        BiasedConvolution(tensors, "layer5.conv2d_list." + std::to_string(index++), {.dilation = dilation}));
  }
}

at::Tensor AsppHead::Scores(const at::Tensor& x) const {
  at::Tensor scores = convolutions_.front()(x);
  for (size_t i = 1; i < convolutions_.size(); ++i) scores = convolutions_[i].AddedTo(scores, x);
  return scores;
}

// On the CPU, one picture at a time: without AVX-512, oneDNN computes these convolutions in an order that
// depends on the number of pictures, and an answer must not depend on the batch around it.
at::Tensor AsppHead::operator()(const FeatureMap& x) const {
  if (!x.values.is_cpu() || x.values.size(0) == 1) return Scores(x.values);
  std::vector<at::Tensor> scores;
  for (int64_t i = 0; i < x.values.size(0); ++i) scores.push_back(Scores(x.values.narrow(0, i, 1)));
  return at::cat(scores);
}

AttentionHead::AttentionHead(const DeepLabOptions& options, const TensorMap& tensors)
    : kind_(KindOf(options)),
      kronecker_(options.head == DeepLabHead::kKao),
      heads_(options.heads),
      reduce_(NormedConvolution(tensors, "layer5.reduce.conv", "layer5.reduce.bn",
                                {.activation = Activation::kRelu}, options.epsilon)),
      classifier_(BiasedConvolution(tensors, "layer5.classifier", {})) {
  const auto read = [&](const char* name) { return tensors.at(std::string("layer5.attention.") + name); };
  const auto own = [&](const char* name) { return Owned(read(name), tensors.target); };
  weights_.key_weight = own("key.weight");
  weights_.value_weight = own("value.weight");
  weights_.value_bias = own("value.bias");
  // The batch norm's shift is the same for all coefficients of one softmax and cancels, so only its scale is
  // used.
  const at::Tensor scale = FoldBatchNorm(tensors, "layer5.attention.coefficients.", options.epsilon).scale;
  if (kronecker_) {
    weights_.query_weight = own("query.weight");
    weights_.query_bias = own("query.bias");
    coefficient_scale_ = Owned(scale, tensors.target);
  } else {
    weights_.query_weight = Owned(ScaleHeads(read("query.weight"), scale), tensors.target);
    weights_.query_bias = Owned(ScaleHeads(read("query.bias").unsqueeze(1), scale).flatten(), tensors.target);
  }
}

at::Tensor AttentionHead::Attend(const at::Tensor& x, const at::Tensor& valid) const {
  if (!kronecker_) {
    ProbeDotProducts(kDeepLabAttention, x,
                     {.kind = kind_,
                      .query_weight = weights_.query_weight,
                      .query_bias = weights_.query_bias,
                      .key_weight = weights_.key_weight,
                      .key_bias = weights_.key_bias,
                      .heads = heads_},
                     valid);
    return kernels::attention_module(x, kind_, weights_, heads_, 1.0, /*residual=*/true, valid);
  }
  ProbeKronecker(kDeepLabAttention, x,
                 {.kind = kind_,
                  .query_weight = weights_.query_weight,
                  .query_bias = weights_.query_bias,
                  .key_weight = weights_.key_weight,
                  .coefficient_scale = coefficient_scale_,
                  .heads = heads_},
                 valid);
  return kernels::kao_module(x, kind_,
                             {.query_weight = weights_.query_weight,
                              .key_weight = weights_.key_weight,
                              .value_weight = weights_.value_weight,
                              .query_bias = weights_.query_bias,
                              .value_bias = weights_.value_bias,
                              .coefficient_scale = coefficient_scale_},
                             heads_, /*residual=*/true, valid);
}

at::Tensor AttentionHead::operator()(const FeatureMap& x) const {
  return classifier_(Attend(reduce_(x.values), x.extents.AsValid(x.values.device())));
}

}  // namespace saccade::models
