// Disparities as a portable float map.
#pragma once

#include <string>
#include <vector>

namespace saccade::client {

// "Pf", little-endian (-1.0), bottom row first. `values` are row by row from the top, width * height of them.
std::string ToPfm(int width, int height, const std::vector<float>& values);

}  // namespace saccade::client
