// A U-Net's block: convolutions, batch norms folded in, each with its ReLU.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "models/layers/convolution.h"
#include "models/networks/unet3d/table.h"
#include "models/weights/weights.h"

namespace saccade::models {

// Immutable; calls may run at once on several threads.
class ConvolutionBlock {
 public:
  // The tensors PREFIX NAME.conv1 and so on; weights of planes have a depth of 1.
  ConvolutionBlock(const EncoderDecoder& network, const UnetBlock& block, const TensorMap& tensors);

  // A map [1, C, D, H, W], channels-last, zero beyond its sides; the result has the same sides.
  at::Tensor operator()(at::Tensor x) const;

  int64_t outputs() const { return outputs_; }
  // Multiply-adds for one position.
  double work() const { return work_; }

 private:
  std::vector<Convolution> convolutions_;
  int64_t outputs_ = 0;
  double work_ = 0;
};

// The blocks of an encoder and decoder, each of whose results is pooled or enlarged for the next.
std::vector<ConvolutionBlock> MakeBlocks(const EncoderDecoder& network, const TensorMap& tensors);

}  // namespace saccade::models
