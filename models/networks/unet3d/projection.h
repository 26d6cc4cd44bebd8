// From a volume to a plane: every column's values, weighed by what a small 3-D network says of them.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "models/layers/convolution.h"
#include "models/networks/unet3d/block.h"
#include "models/networks/unet3d/tiles.h"
#include "models/tasks/progress.h"

namespace saccade::models {

// Immutable; calls may run at once on several threads.
class Projection {
 public:
  Projection(const UnetOptions& options, const TensorMap& tensors);

  // `volume` is [1, 1, D, H, W], float32 on the CPU, normalised, H and W multiples of kUnetMultiple. The
  // plane, [1, 1, 1, H, W], float32 on the CPU, holds each column's mean, weighed by the softmax of the
  // network's output along the depth.
  at::Tensor operator()(const at::Tensor& volume, Progress& progress) const;

  // What that adds to the progress.
  double Work(const Sides& sides) const;

 private:
  Tiling Cut(const Sides& sides) const;
  double WorkOf(const Sides& window) const;
  // One value for each position of a window [1, 1, D, h, w].
  at::Tensor Weigh(const at::Tensor& window) const;

  Target target_;
  Sides step_;
  int64_t tile_;
  std::vector<ConvolutionBlock> blocks_;  // as in EncoderDecoder
  Convolution output_;
};

}  // namespace saccade::models
