// Serialises the label maps of segmentations.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "models/tasks/result.h"
#include "server/pictures/still_wanted.h"

namespace saccade::server {

// Both ask `wanted` before about each 64 Ki pixels, and return its error.

// 8-bit greyscale PNG; each pixel is a class. INTERNAL if the number of labels does not match the size;
// otherwise errors as GreyPng.
absl::StatusOr<std::string> LabelMapPng(const models::Segmentation& result,
                                        const StillWanted& wanted = nullptr);

// width * height bytes, row by row. INTERNAL if the number of labels does not match the size.
absl::StatusOr<std::string> LabelMapBytes(const models::Segmentation& result,
                                          const StillWanted& wanted = nullptr);

}  // namespace saccade::server
