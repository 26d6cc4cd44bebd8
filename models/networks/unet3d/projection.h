// Projects a volume to a plane: averages each column's values with weights from a small 3-D network.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "models/layers/convolution.h"
#include "models/networks/unet3d/block.h"
#include "models/networks/unet3d/tiles.h"
#include "models/tasks/progress.h"

namespace saccade::models {

// Returns the cores whose windows are computed at once: of at most `tile` positions in height and width, 0
// meaning all, and of the whole depth. Cores of deep volumes are smaller, down to kUnetMultiple, so that a
// window has at most 2^23 positions.
Tiling ProjectionTiling(const VolumeSides& sides, int64_t tile);

// Immutable and thread-safe.
class Projection {
 public:
  Projection(const UnetOptions& options, const TensorMap& tensors);

  // `volume` is [1, 1, D, H, W], float32 on the CPU, normalised, with H and W multiples of kUnetMultiple.
  // Returns the plane, [1, 1, 1, H, W], float32 on the CPU: each column's mean, weighted by the softmax of
  // the network's output along the depth.
  at::Tensor operator()(const at::Tensor& volume, Progress& progress) const;

  // Total work that a call adds to its Progress, for a volume with these sides.
  double Work(const VolumeSides& sides) const;

 private:
  double WorkOf(const VolumeSides& window) const;
  // Returns the network's output, one value for each position of a window [1, 1, D, h, w].
  at::Tensor Weigh(const at::Tensor& window) const;

  Target target_;
  VolumeSides step_;
  int64_t tile_;
  std::vector<ConvolutionBlock> blocks_;  // as in EncoderDecoder
  Convolution output_;
};

}  // namespace saccade::models
