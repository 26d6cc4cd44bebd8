// Grey pictures as PNG: what this room's results are written with.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace saccade::server {

// Rows without padding, `width * height` values. Lossless. RESOURCE_EXHAUSTED if memory is short, INTERNAL
// with the codec's words if it refuses. Thread-safe.
absl::StatusOr<std::string> GreyPng(const uint8_t* pixels, int64_t height, int64_t width);
absl::StatusOr<std::string> GreyPng(const uint16_t* pixels, int64_t height, int64_t width);

}  // namespace saccade::server
