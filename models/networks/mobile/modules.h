// The modules of the mobile networks, with their weights.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>

#include "kernels/inverted_residual/inverted_residual.h"
#include "kernels/inverted_residual/inverted_residual_int8.h"
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

  // Whether the kernel for inverted residuals computes this input, and not the layers one after the other.
  bool IsFusedFor(const at::Tensor& input) const { return fused_ || (fused_int8_ && input.is_quantized()); }

 private:
  // The convolutions one after the other: on a GPU, while the network is being quantized, and in 8 bits where
  // the kernel cannot compute them together or the module gets floats.
  struct Layers {
    std::optional<Convolution> expand;
    Convolution depthwise;
    Convolution project;
  };

  void LoadLayers(const TensorMap& tensors);
  at::Tensor Attend(const at::Tensor& x) const;
  // What the depthwise convolution reads besides what the expansion makes of x, or undefined.
  at::Tensor Kept(const at::Tensor& x) const;
  at::Tensor ByLayers(const at::Tensor& x, const at::Tensor& input) const;
  // `input` is in 8 bits.
  at::Tensor InInt8(const at::Tensor& input) const;

  Block block_;
  at::ScalarType type_;
  std::optional<ExplicitAttention> explicit_;  // makes the rest of the expansion's channels
  std::optional<AttentionPath> attention_;
  // One of both, fused_int8_ only together with layers_.
  std::optional<kernels::InvertedResidual> fused_;
  std::optional<Layers> layers_;
  std::optional<kernels::Int8InvertedResidual> fused_int8_;
  Grid filtered_grid_;  // of what fused_int8_ filters
};

}  // namespace saccade::models
