// The U-Net that restores, tile by tile: exactly what it would be as a whole, with the memory of its coarser
// maps.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "models/networks/unet3d/attended_output.h"
#include "models/networks/unet3d/block.h"
#include "models/networks/unet3d/siamese.h"
#include "models/networks/unet3d/tiles.h"
#include "models/tasks/progress.h"

namespace saccade::models {

// Of volumes, or with the options of a projection, of planes: maps of depth 1. Immutable; calls may run at
// once on several threads.
//
// Two maps are kept whole at half the sides, one of them until the decoder beside it has read it; at full
// resolution none: what the first encoder gives is computed again for the last decoder.
class Unet {
 public:
  Unet(const UnetOptions& options, const TensorMap& tensors);

  // `volume` is [1, 1, D, H, W], float32 on the CPU, normalised, with sides that are multiples of
  // kUnetMultiple (of a plane but the depth). The answer is [D, H, W], float32 on the CPU.
  at::Tensor operator()(const at::Tensor& volume, Progress& progress) const;

  // What that adds to the progress.
  double Work(const Sides& sides) const;

 private:
  // Cores of a map with these sides.
  Tiling Cut(const Sides& sides) const;
  Sides Halved(const Sides& sides) const;

  // The stages, in their order. Maps that are handed over are let go of as soon as they are read.
  at::Tensor First(const at::Tensor& volume, Progress& progress) const;
  struct Encoded {
    at::Tensor skip, pooled;
  };
  Encoded Second(const at::Tensor& half, Progress& progress) const;
  at::Tensor Bottom(at::Tensor quarter, Progress& progress) const;
  at::Tensor Decoded(Encoded encoded, Progress& progress) const;
  at::Tensor Last(const at::Tensor& volume, const at::Tensor& half, Progress& progress) const;

  Target target_;
  Sides step_, tile_;
  std::vector<ConvolutionBlock> blocks_;  // as in EncoderDecoder
  std::optional<SiameseModule> bottom_attention_, decoder_attention_;
  AttendedOutput output_;
};

}  // namespace saccade::models
