// Reads a PNG that has a number for each pixel of a picture.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace saccade::server {

struct PngNumbers {
  int bits = 8;                  // 8 or 16
  std::vector<uint16_t> values;  // row by row
};

// INVALID_ARGUMENT names the file if it cannot be read, is no PNG with one channel, or is not as large as the
// picture. Blocks.
absl::StatusOr<PngNumbers> ReadTruthPng(const std::string& path, int64_t height, int64_t width);

// INVALID_ARGUMENT, naming the file, if its size is not the picture's.
absl::Status CheckTruthSize(const std::string& path, int64_t height, int64_t width, int64_t picture_height,
                            int64_t picture_width);

}  // namespace saccade::server
