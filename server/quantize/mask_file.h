// Reads the classes of a picture's pixels.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace saccade::server {

// Pixels of a mask that do not count.
inline constexpr int kIgnoredClass = 255;
// A mask or a file of disparities, at most.
inline constexpr int64_t kMaxTruthFileBytes = int64_t{256} << 20;

// Returns the class of each pixel of a mask, row by row: a grey PNG, or one with a palette, whose indices are
// the classes. INVALID_ARGUMENT names the file if it cannot be read, is not as large as the picture (`height`
// x `width`), or has a class that is neither below `classes` nor kIgnoredClass. Blocks.
absl::StatusOr<std::vector<uint8_t>> ReadMaskFile(const std::string& path, int64_t height, int64_t width,
                                                  int64_t classes);

}  // namespace saccade::server
