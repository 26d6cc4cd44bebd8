// Boxes as the heads compute with them, in torchvision's float32 arithmetic. No LibTorch here.
#pragma once

#include <array>

#include "models/placement.h"

namespace saccade::models {

struct Box {
  float x_min = 0;
  float y_min = 0;
  float x_max = 0;
  float y_max = 0;

  friend bool operator==(const Box&, const Box&) = default;
};

// What the four numbers that move a box are divided by: x, y, width, height.
using BoxWeights = std::array<float, 4>;
inline constexpr BoxWeights kProposalWeights = {1, 1, 1, 1};
inline constexpr BoxWeights kDetectionWeights = {10, 10, 5, 5};

// `box` moved by a head's four numbers: the centre by shares of its size, the size by a power of e, which is
// bounded.
Box Moved(const Box& box, const float* deltas, const BoxWeights& weights);

// The part of it within a picture.
Box Clipped(const Box& box, Size picture);

// Whether both sides are at least `side`.
bool IsAtLeast(const Box& box, float side);

// From a picture's scaled size to the size that it was sent with; clipped, as rounding may lead a little
// beyond.
Box Resized(const Box& box, Size scaled, Size sent);

}  // namespace saccade::models
