// Converts a detection's mask to a bitmap and to polygons.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/tasks/mask.h"

namespace saccade::server {

// The bounding box of a mask as a bitmap: 255 inside the mask, 0 outside. Width, height and `values` are
// empty if the mask has no pixels.
struct MaskBits {
  int64_t x = 0;
  int64_t y = 0;
  int64_t width = 0;
  int64_t height = 0;
  std::vector<uint8_t> values;
  // Number of pixels in the mask.
  int64_t area = 0;
};

// The pixels whose probability is at least `threshold`.
MaskBits BitsOf(const models::MaskRegion& region, float threshold);

// Outline of a connected part of the mask, or of a hole in one. `points` holds pixels of the mask as x, y, x,
// y, ..., joined by straight lines. Filling all polygons of a mask together with the even-odd rule, edges
// included, reproduces the mask exactly.
struct MaskPolygon {
  std::vector<int32_t> points;
  bool hole = false;
};

// Returns polygons in the coordinate system of bits.x and bits.y. RESOURCE_EXHAUSTED if out of memory,
// INTERNAL with OpenCV's message for other failures. Thread-safe.
absl::StatusOr<std::vector<MaskPolygon>> PolygonsOf(const MaskBits& bits);

}  // namespace saccade::server
