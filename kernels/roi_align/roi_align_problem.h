// One call of the operator as plain pointers and numbers, as the tensor bindings pass it to the CPU and CUDA
// code, which do not depend on LibTorch.
#pragma once

#include <cstdint>

#include "kernels/common/feature_map.h"

namespace saccade::kernels {

inline constexpr int kMaxRoiLevels = 8;

// One map of the pyramid; roi_align and roi_align_3d have one level.
struct RoiAlignLevel {
  FeatureMap map;
  Extent extent;         // size[0] is 1 for images
  double scale = 1;      // pixels of the map per unit of a region's coordinates
  int64_t elements = 0;  // from the first to the last element of the map in memory
};

struct RoiAlignProblem {
  RoiAlignLevel level[kMaxRoiLevels];
  int levels = 1;
  int64_t batch = 0;
  int64_t channels = 0;

  int64_t regions = 0;
  // [regions, 5] (sample, x1, y1, x2, y2), or if `temporal` [regions, 3] (sample, t1, t2), in the
  // accumulation type: float, or double for double maps.
  const void* rois = nullptr;
  bool temporal = false;
  // [regions]: each region's level; out of range if the region has none. Null if there is one level.
  const int64_t* level_of = nullptr;

  int64_t pooled[kMaxSpatialDims] = {1, 1, 1};
  int64_t sampling_ratio = -1;
  bool aligned = false;

  // [regions, channels, bins], dense, in the features' type.
  void* out = nullptr;
  bool channels_last = false;  // [regions, bins, channels] instead
};

inline int64_t BinsOf(const RoiAlignProblem& p) { return p.pooled[0] * p.pooled[1] * p.pooled[2]; }

}  // namespace saccade::kernels
