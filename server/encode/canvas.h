// Helpers for maps with one value per pixel: paste a region's map into the whole picture's, and resize a map.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "models/api/placement.h"

namespace saccade::server {

// Returns a map of size `whole` with `values` (row by row, of size `part`) at x, y, and `beyond` everywhere
// else. REQUIRES: the part lies within the whole.
template <typename Value>
std::vector<Value> OnCanvas(const std::vector<Value>& values, models::Size part, int64_t x, int64_t y,
                            models::Size whole, Value beyond) {
  std::vector<Value> canvas(static_cast<size_t>(whole.height * whole.width), beyond);
  for (int64_t row = 0; row < part.height; ++row) {
    const auto from = values.begin() + row * part.width;
    std::copy(from, from + part.width, canvas.begin() + (y + row) * whole.width + x);
  }
  return canvas;
}

// Resizes a map by nearest neighbour: each output pixel gets the input value at its centre.
template <typename Value>
std::vector<Value> Nearest(const std::vector<Value>& values, models::Size from, models::Size to) {
  std::vector<Value> out;
  out.reserve(static_cast<size_t>(to.height * to.width));
  for (int64_t row = 0; row < to.height; ++row) {
    const int64_t begin = (2 * row + 1) * from.height / (2 * to.height) * from.width;
    for (int64_t column = 0; column < to.width; ++column) {
      out.push_back(values[static_cast<size_t>(begin + (2 * column + 1) * from.width / (2 * to.width))]);
    }
  }
  return out;
}

}  // namespace saccade::server
