// The 3-D part of PSMNet: costs of disparities, regularised by encoders and decoders over the volume.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "models/layers/convolution.h"
#include "models/layers/transposed_convolution.h"
#include "models/weights/weights.h"

namespace saccade::models {

// One encoder and decoder. Immutable; calls may run at once on several threads.
class Hourglass {
 public:
  struct Maps {
    at::Tensor output;       // as the input
    at::Tensor presqueeze;   // at half the size, before the inner encoder
    at::Tensor postsqueeze;  // at half the size, behind it
  };

  // The tensors NAME.conv1 to NAME.conv6.
  Hourglass(const TensorMap& tensors, const std::string& name);

  // volume is float32 [1, C, D, H, W], channels-last, its sides multiples of 4; it is let go of as soon as it
  // is read. The others come from the hourglasses before: of the first, and of the last. The first hourglass
  // gets neither.
  Maps operator()(at::Tensor volume, const at::Tensor& presqueeze, const at::Tensor& postsqueeze) const;

 private:
  Convolution conv1_, conv2_, conv3_, conv4_;
  TransposedConvolution conv5_, conv6_;
};

// A convolution with batch norm and ReLU, and one to a single channel: a volume's cost at each disparity.
class CostHead {
 public:
  CostHead(const TensorMap& tensors, const std::string& name);

  // float32 [1, C, D, H, W] to [D, H, W], contiguous.
  at::Tensor operator()(const at::Tensor& volume) const;

 private:
  Convolution conv_, cost_;
};

}  // namespace saccade::models
