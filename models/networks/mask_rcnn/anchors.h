// The boxes that proposals start from: at every position of a level, one of each aspect ratio, rounded as
// torchvision's AnchorGenerator rounds. No LibTorch here.
#pragma once

#include <array>
#include <cstdint>

#include "models/networks/mask_rcnn/box.h"
#include "models/networks/mask_rcnn/table.h"
#include "models/placement.h"

namespace saccade::models {

class Anchors {
 public:
  // Of a level (0 is fpn1) whose positions are `spacing` pixels apart.
  Anchors(int level, Size spacing);

  // In the order of the RPN's outputs: row by row, and for each position one after the other.
  Box At(int64_t row, int64_t column, int64_t ratio) const;

 private:
  Size spacing_;
  std::array<Box, kAspectRatios> cells_;  // around the origin
};

// How far apart a level's positions are. As torchvision has it: the bucket's sides divided by the level's,
// rounded down, which is 4, 8, 16, ... unless a listed bucket is no multiple of 32. `exact` takes those for
// every bucket, as the answer must not depend on it.
Size SpacingOf(int level, Size bucket, Size grid, bool exact);

}  // namespace saccade::models
