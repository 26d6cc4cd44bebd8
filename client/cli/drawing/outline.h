// A mask's outline. No OpenCV here.
#pragma once

#include <vector>

#include "client/types.h"

namespace saccade::client {

struct OutlinePoint {
  int x = 0;
  int y = 0;
};

// The pixels around the mask's largest part, its corners alone, as OpenCV's fillPoly takes them; holes and
// smaller parts are lost. Empty if the mask is, or cannot be read.
std::vector<OutlinePoint> OutlineOf(const RleMask& mask);

}  // namespace saccade::client
