// A spatial layer with its weights: a convolution, a convolution beside ExpAtt, or GSA, with its batch norm
// folded in and a ReLU.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <string>

#include "models/layers/convolution.h"
#include "models/layers/explicit_attention.h"
#include "models/layers/explicit_variant.h"
#include "models/networks/residual/table.h"
#include "models/weights/weights.h"

namespace saccade::models {

// Immutable and thread-safe.
class SpatialPath {
 public:
  // If `relu` is false, the layer must be called through AddedTo(), which adds the shortcut before the ReLU.
  // `stays_int8` as in ConvolutionOptions, for layers that are a convolution alone.
  SpatialPath(const SpatialLayer& layer, const ResidualOptions& options, const TensorMap& tensors, bool relu,
              bool stays_int8);

  // x is [B, inputs, H, W], channels-last, as is the result, and may be in 8 bits. REQUIRES: `relu`.
  at::Tensor operator()(const at::Tensor& x) const;
  // Returns relu(layer(x) + other). May overwrite `other`.
  at::Tensor AddedTo(at::Tensor other, const at::Tensor& x) const;

 private:
  struct Gsa {
    at::Tensor query_weight, value_weight;
    std::optional<at::Tensor> column_embedding, row_embedding;
    std::optional<at::Tensor> key_weight;
    std::optional<at::Tensor> query_bias, key_bias, value_bias;  // of the transforms' batch norms
    std::optional<at::Tensor> middle_scale, middle_shift;        // only between both axes
    at::Tensor scale, shift;
  };

  void MakeExpAtt(const ResidualOptions& options, const TensorMap& tensors);
  void MakeGsa(const ResidualOptions& options, const TensorMap& tensors);
  // Folds the batch norm behind a transform of Q, K or V into its weight and bias.
  void FoldTransformNorm(const TensorMap& tensors, const char* part, at::Tensor& weight,
                         std::optional<at::Tensor>& bias) const;
  at::Tensor Explicit(const at::Tensor& x) const;
  at::Tensor Global(const at::Tensor& x) const;

  SpatialLayer layer_;
  std::string content_;
  int64_t heads_;
  bool relu_;
  Target target_;
  std::optional<Convolution> convolution_;  // with ExpAtt: for the remaining channels
  std::optional<ExplicitAttention> expatt_;
  std::optional<ExplicitVariant> variant_;  // instead of expatt_, with maps of the paper's ablations
  std::optional<Gsa> gsa_;
};

}  // namespace saccade::models
