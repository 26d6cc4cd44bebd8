// Computes a mask's outline. This header needs no OpenCV.
#pragma once

#include <vector>

#include "client/cpp/types.h"

namespace saccade::client {

struct OutlinePoint {
  int x = 0;
  int y = 0;
};

// Returns the corner pixels of the outline of the mask's largest part, as OpenCV's fillPoly takes them. Holes
// and smaller parts are dropped. Empty if the mask is empty or cannot be decoded.
std::vector<OutlinePoint> OutlineOf(const RleMask& mask);

}  // namespace saccade::client
