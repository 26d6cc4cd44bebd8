// The modules of the mobile networks, with their weights.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>

#include "models/layers/convolution.h"
#include "models/layers/explicit_attention.h"
#include "models/networks/mobile/attention_path.h"
#include "models/networks/mobile/table.h"
#include "models/weights/weights.h"

namespace saccade::models {

// Makes a folded and packed convolution from the tensors prefix + conv.weight and bn.*.
Convolution MakeConvolution(const TensorMap& tensors, const std::string& prefix,
                            const ConvolutionOptions& options);

// A module of the kind in the block's `module`. Immutable and thread-safe.
class MobileModule {
 public:
  MobileModule(const Block& block, const MobileOptions& options, const TensorMap& tensors);

  // `input` is [B, inputs, H, W], channels-last, of floats or in 8 bits.
  at::Tensor operator()(const at::Tensor& input) const;

 private:
  at::Tensor Expand(const at::Tensor& x) const;
  at::Tensor Attend(const at::Tensor& x) const;

  Block block_;
  at::ScalarType type_;
  std::optional<Convolution> expand_;
  std::optional<ExplicitAttention> explicit_;  // makes the rest of the expansion's channels
  Convolution depthwise_;
  std::optional<AttentionPath> attention_;
  Convolution project_;
};

}  // namespace saccade::models
