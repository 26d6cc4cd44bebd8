// Encodes greyscale pictures as PNG.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace saccade::server {

// Losslessly encodes `width * height` values, in rows without padding. RESOURCE_EXHAUSTED if out of memory,
// INTERNAL with the codec's message for other failures. Thread-safe.
absl::StatusOr<std::string> GreyPng(const uint8_t* pixels, int64_t height, int64_t width);
absl::StatusOr<std::string> GreyPng(const uint16_t* pixels, int64_t height, int64_t width);

}  // namespace saccade::server
