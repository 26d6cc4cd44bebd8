// Helpers for maps with one value per pixel: paste a region's map into the whole picture's, and resize a map.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "models/api/placement.h"
#include "server/pictures/wanted_rows.h"

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

// Resizes a map by nearest neighbour: each output pixel gets the input value at its centre. Asks `wanted`
// before about each 64 Ki pixels, and returns its error. REQUIRES: all sides are positive.
template <typename Value>
absl::StatusOr<std::vector<Value>> Nearest(const std::vector<Value>& values, models::Size from,
                                           models::Size to, const StillWanted& wanted = nullptr) {
  // The input column of each output column, so that no pixel needs a division.
  std::vector<int64_t> columns(static_cast<size_t>(to.width));
  for (int64_t column = 0; column < to.width; ++column)
    columns[static_cast<size_t>(column)] = (2 * column + 1) * from.width / (2 * to.width);
  std::vector<Value> out;
  // Not filled first: all of a large map's memory would be touched before the first question.
  out.reserve(static_cast<size_t>(to.height * to.width));
  std::vector<Value> line(columns.size());
  int64_t row_of_line = -1;
  absl::Status made = ForWantedRows(to.height, to.width, wanted, [&](int64_t row) {
    const int64_t from_row = (2 * row + 1) * from.height / (2 * to.height);
    if (from_row != row_of_line) {
      const auto begin = values.begin() + from_row * from.width;
      std::transform(columns.begin(), columns.end(), line.begin(),
                     [&](int64_t column) { return begin[column]; });
      row_of_line = from_row;
    }
    out.insert(out.end(), line.begin(), line.end());
  });
  if (!made.ok()) return made;
  return out;
}

}  // namespace saccade::server
