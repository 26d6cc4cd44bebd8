// Encodes pictures as PNG.
#pragma once

#include <cstdint>
#include <opencv2/core.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "server/pictures/still_wanted.h"

namespace saccade::server {

// Each encodes without loss and does not throw. RESOURCE_EXHAUSTED if out of memory, INTERNAL with libpng's
// message for other failures. Thread-safe.

// `width * height` values in rows without padding. Asks `wanted` before about each 64 Ki values, and returns
// its error.
absl::StatusOr<std::string> GreyPng(const uint8_t* pixels, int64_t height, int64_t width,
                                    const StillWanted& wanted = nullptr);
absl::StatusOr<std::string> GreyPng(const uint16_t* pixels, int64_t height, int64_t width,
                                    const StillWanted& wanted = nullptr);
// 8-bit pixels, BGR or grey.
absl::StatusOr<std::string> PngOf(const cv::Mat& pixels);

}  // namespace saccade::server
