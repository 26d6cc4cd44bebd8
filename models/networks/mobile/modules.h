// The modules of the mobile networks, with weights.
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

// The tensors prefix + conv.weight and bn.*, folded and packed.
Convolution MakeConvolution(const TensorMap& tensors, const std::string& prefix,
                            const ConvolutionOptions& options);

// As the block's `module` says. Immutable; calls may run at once on several threads.
class MobileModule {
 public:
  MobileModule(const Block& block, const MobileOptions& options, const TensorMap& tensors);

  // x is [B, inputs, H, W], channels-last.
  at::Tensor operator()(const at::Tensor& x) const;

 private:
  at::Tensor Expand(const at::Tensor& x) const;
  at::Tensor Attend(const at::Tensor& x) const;

  Block block_;
  std::optional<Convolution> expand_;
  std::optional<ExplicitAttention> explicit_;  // the rest of what it expands to
  Convolution depthwise_;
  std::optional<AttentionPath> attention_;
  Convolution project_;
};

}  // namespace saccade::models
