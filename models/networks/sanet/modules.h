// SANet's two modules, with weights.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "models/layers/convolution.h"
#include "models/networks/sanet/table.h"
#include "models/weights/weights.h"

namespace saccade::models {

// The tensors prefix + conv.weight and bn.*, folded and packed.
Convolution MakeConvolution(const TensorMap& tensors, const std::string& prefix,
                            const ConvolutionOptions& options);

// Siamese attention over the module's input, its batch norm folded.
class SiameseAttention {
 public:
  // With `skip`, x is added to the result.
  SiameseAttention(const TensorMap& tensors, const std::string& prefix, bool global_term, bool skip);

  at::Tensor operator()(const at::Tensor& x) const;

 private:
  at::Tensor value_weight_;
  std::optional<at::Tensor> w_;
  at::Tensor scale_;
  at::Tensor shift_;
  bool global_term_;
  bool skip_;
};

// BaseModule or AttnModule, as the block says. Immutable; calls may run at once on several threads.
class SanetModule {
 public:
  SanetModule(const Block& block, bool global_term, const TensorMap& tensors);

  // x is float32 [B, inputs, H, W], channels-last.
  at::Tensor operator()(const at::Tensor& x) const;

 private:
  at::Tensor Attend(const at::Tensor& x) const;

  Block block_;
  std::optional<Convolution> expand_;
  Convolution depthwise_;
  std::optional<SiameseAttention> attention_;
  Convolution project_;
};

}  // namespace saccade::models
