// Boxes and the heads' box arithmetic, in float32 as in torchvision. Does not include LibTorch.
#pragma once

#include <array>

#include "models/api/placement.h"

namespace saccade::models {

struct Box {
  float x_min = 0;
  float y_min = 0;
  float x_max = 0;
  float y_max = 0;

  friend bool operator==(const Box&, const Box&) = default;
};

// Divisors of a box's four deltas: x, y, width, height.
using BoxWeights = std::array<float, 4>;
inline constexpr BoxWeights kProposalWeights = {1, 1, 1, 1};
inline constexpr BoxWeights kDetectionWeights = {10, 10, 5, 5};

// Applies a head's four deltas to `box`: the centre moves in units of the box's size, and the sides are
// multiplied by a bounded power of e.
Box Moved(const Box& box, const float* deltas, const BoxWeights& weights);

// Returns the part of `box` within a picture.
Box Clipped(const Box& box, Size picture);

// Returns whether both sides are at least `side`.
bool IsAtLeast(const Box& box, float side);

// Converts a box from a picture's scaled size to the size it was sent with. Clips it, as rounding may exceed
// the picture.
Box Resized(const Box& box, Size scaled, Size sent);

}  // namespace saccade::models
