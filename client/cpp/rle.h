// Decodes COCO's compressed run lengths into pixels. The input comes from the network and is not trusted.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cpp/types.h"

namespace saccade::client {

// The smallest rectangle of the picture that contains a mask; all zero for an empty mask.
struct MaskRegion {
  int x = 0;
  int y = 0;
  int width = 0;
  int height = 0;
  // Row by row: 255 inside the mask, 0 outside.
  std::vector<uint8_t> pixels;
};

// INVALID_ARGUMENT if the text is not valid run lengths, if they do not cover height * width exactly, or if
// height * width exceeds 2^28. Memory: the rectangle and four bytes per run; only the runs are allocated
// before the whole text has been checked.
absl::StatusOr<MaskRegion> DecodeMask(const RleMask& mask);

}  // namespace saccade::client
