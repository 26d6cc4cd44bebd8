// The boxes from which proposals are regressed: at every position of a level, one for each aspect ratio,
// rounded as torchvision's AnchorGenerator rounds. Does not include LibTorch.
#pragma once

#include <array>
#include <cstdint>

#include "models/api/placement.h"
#include "models/networks/mask_rcnn/box.h"
#include "models/networks/mask_rcnn/table.h"

namespace saccade::models {

class Anchors {
 public:
  // Anchors of a level (0 is fpn1) whose positions are `spacing` pixels apart.
  Anchors(int level, Size spacing);

  // Returns one anchor. The RPN's outputs are ordered by row, then column, then ratio.
  Box At(int64_t row, int64_t column, int64_t ratio) const;

 private:
  Size spacing_;
  std::array<Box, kAspectRatios> cells_;  // for the position at the origin
};

// Returns the distance in pixels between a level's positions. As in torchvision it is the bucket's sides
// divided by the level's, rounded down: 4, 8, 16, ... unless a listed bucket is not a multiple of 32. With
// `exact` it has these values for every bucket, as the result must not depend on the bucket.
Size SpacingOf(int level, Size bucket, Size grid, bool exact);

}  // namespace saccade::models
