// The 3-D part of PSMNet: encoders and decoders that regularise the cost volume.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "models/layers/convolution.h"
#include "models/layers/transposed_convolution.h"
#include "models/weights/weights.h"

namespace saccade::models {

// One encoder and decoder. Immutable and thread-safe.
class Hourglass {
 public:
  struct Maps {
    at::Tensor output;       // same size as the input
    at::Tensor presqueeze;   // at half the size, before the inner encoder
    at::Tensor postsqueeze;  // at half the size, after the inner decoder
  };

  // Loads the tensors NAME.conv1 to NAME.conv6.
  Hourglass(const TensorMap& tensors, const std::string& name);

  // `volume` is [1, C, D, H, W], channels-last, with sides that are multiples of 4; it is released as soon as
  // it is read. `presqueeze` comes from the first hourglass and `postsqueeze` from the previous one; both are
  // undefined for the first hourglass.
  Maps operator()(at::Tensor volume, const at::Tensor& presqueeze, const at::Tensor& postsqueeze) const;

 private:
  Convolution conv1_, conv2_, conv3_, conv4_;
  TransposedConvolution conv5_, conv6_;
};

// A convolution with batch norm and ReLU, then one to a single channel: the cost of each disparity.
class CostHead {
 public:
  CostHead(const TensorMap& tensors, const std::string& name);

  // [1, C, D, H, W] to [D, H, W], contiguous.
  at::Tensor operator()(const at::Tensor& volume) const;

 private:
  Convolution conv_, cost_;
};

}  // namespace saccade::models
