// A detection's mask as a picture, and as polygons.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/tasks/mask.h"

namespace saccade::server {

// The least part of the region that holds the mask: 255 in it, 0 beside it. No sides, and no values, if it
// has no pixels.
struct MaskBits {
  int64_t x = 0;
  int64_t y = 0;
  int64_t width = 0;
  int64_t height = 0;
  std::vector<uint8_t> values;
  // Pixels in the mask.
  int64_t area = 0;
};

// Pixels whose probability is at least `threshold`.
MaskBits BitsOf(const models::MaskRegion& region, float threshold);

// Around a part of the mask, or a hole in one: pixels of the mask, x and y in turn, neighbours joined by
// straight lines. All of a mask's polygons filled together, by even and odd and with their edges, are the
// mask to the pixel.
struct MaskPolygon {
  std::vector<int32_t> points;
  bool hole = false;
};

// In the coordinates that the bits' x and y have. RESOURCE_EXHAUSTED if memory is short, INTERNAL with
// OpenCV's words if it refuses. Thread-safe.
absl::StatusOr<std::vector<MaskPolygon>> PolygonsOf(const MaskBits& bits);

}  // namespace saccade::server
