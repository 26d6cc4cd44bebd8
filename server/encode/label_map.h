// Serialises the label maps of segmentations.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "models/tasks/result.h"

namespace saccade::server {

// 8-bit greyscale PNG; each pixel is a class. INTERNAL if the number of labels does not match the size;
// otherwise errors as GreyPng.
absl::StatusOr<std::string> LabelMapPng(const models::Segmentation& result);

// width * height bytes, row by row. INTERNAL if the number of labels does not match the size.
absl::StatusOr<std::string> LabelMapBytes(const models::Segmentation& result);

}  // namespace saccade::server
