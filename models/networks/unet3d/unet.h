// The restoring U-Net, computed tile by tile: the result is that of the whole map, but full-resolution
// feature maps are never held in memory.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "models/networks/unet3d/attended_output.h"
#include "models/networks/unet3d/block.h"
#include "models/networks/unet3d/tiles.h"
#include "models/tasks/progress.h"

namespace saccade::models {

// For volumes, or with a projection's options for planes: maps of depth 1. Immutable and thread-safe.
//
// Two whole maps are kept at half the sides, one of them until the decoder at its level has read it. At full
// resolution none is kept: the first encoder's result is computed again for the last decoder. Only regular
// attention keeps the last decoder's map.
class Unet {
 public:
  Unet(const UnetOptions& options, const TensorMap& tensors);

  // `volume` is [1, 1, D, H, W], float32 on the CPU, normalised, with sides that are multiples of
  // kUnetMultiple (except a plane's depth). Returns [D, H, W], float32 on the CPU.
  at::Tensor operator()(const at::Tensor& volume, Progress& progress) const;

  // Total work that a call adds to its Progress, for a volume with these sides.
  double Work(const VolumeSides& sides) const;

 private:
  // Returns the tiling of a map with these sides.
  Tiling Cut(const VolumeSides& sides) const;
  VolumeSides Halved(const VolumeSides& sides) const;

  // The stages, in order of execution. Maps passed by value are released as soon as they are read.
  at::Tensor First(const at::Tensor& volume, Progress& progress) const;
  struct Encoded {
    at::Tensor skip, pooled;
  };
  Encoded Second(const at::Tensor& half, Progress& progress) const;
  at::Tensor Bottom(at::Tensor quarter, Progress& progress) const;
  at::Tensor Decoded(Encoded encoded, Progress& progress) const;
  at::Tensor Last(const at::Tensor& volume, const at::Tensor& half, Progress& progress) const;

  Target target_;
  VolumeSides step_, tile_;
  std::vector<ConvolutionBlock> blocks_;  // in the order of EncoderDecoder::blocks
  // Empty if there is no attention there. The last decoder's siamese attention is in output_ instead.
  using MapAttention = std::function<at::Tensor(const at::Tensor&)>;
  MapAttention bottom_attention_, decoder_attention_, last_attention_;
  AttendedOutput output_;
};

}  // namespace saccade::models
