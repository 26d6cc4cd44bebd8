// Writes disparities as a portable float map (PFM).
#pragma once

#include <string>
#include <vector>

namespace saccade::client {

// Returns a "Pf" file, little-endian (-1.0), bottom row first. `values` are width * height, row by row from
// the top.
std::string ToPfm(int width, int height, const std::vector<float>& values);

}  // namespace saccade::client
