// A block of a U-Net: convolutions with folded batch norms, each followed by a ReLU.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "models/layers/convolution.h"
#include "models/networks/unet3d/table.h"
#include "models/weights/weights.h"

namespace saccade::models {

// Immutable and thread-safe.
class ConvolutionBlock {
 public:
  // Loads the tensors PREFIX NAME.conv1 and so on; weights for planes have a depth of 1.
  ConvolutionBlock(const EncoderDecoder& network, const UnetBlock& block, const TensorMap& tensors);

  // x is a map [1, C, D, H, W], channels-last; convolutions pad it with zeros. The result has the same sides.
  at::Tensor operator()(at::Tensor x) const;

  int64_t outputs() const { return outputs_; }
  // Multiply-adds per position.
  double work() const { return work_; }

 private:
  std::vector<Convolution> convolutions_;
  int64_t outputs_ = 0;
  double work_ = 0;
};

// Makes the blocks of an encoder-decoder; pooling and upsampling between them is up to the caller.
std::vector<ConvolutionBlock> MakeBlocks(const EncoderDecoder& network, const TensorMap& tensors);

}  // namespace saccade::models
