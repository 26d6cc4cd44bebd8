// Bounds what the lossless data of a WebP make libwebp allocate, before libwebp sees them.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"

namespace saccade::server {

// Lossless data may divide a picture into small blocks with codes of their own, and libwebp makes tables of
// several kilobytes for each. Reads `data` up to this division. `width` and `height` are those of the
// picture; `data` begin with the transforms, after the size. INVALID_ARGUMENT, saying what was found and what
// is allowed, if there are too many blocks, or if the data are damaged up to there. Thread-safe.
absl::Status CheckWebpBlocks(std::string_view data, int64_t width, int64_t height);

}  // namespace saccade::server
