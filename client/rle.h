// From COCO's compressed run lengths to pixels. What comes over the wire is not trusted.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "client/types.h"

namespace saccade::client {

// The smallest rectangle of the picture that holds a mask; all zero for an empty mask.
struct MaskRegion {
  int x = 0;
  int y = 0;
  int width = 0;
  int height = 0;
  // Row by row: 255 in the mask, 0 beside it.
  std::vector<uint8_t> pixels;
};

// INVALID_ARGUMENT if the text is no run lengths, if they do not cover height * width exactly, or if that is
// over 2^28. Holds the rectangle and four bytes a run; nothing is allocated before all of it was checked but
// the runs.
absl::StatusOr<MaskRegion> DecodeMask(const RleMask& mask);

}  // namespace saccade::client
