// A segmentation's label map as files have it.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "models/tasks/result.h"

namespace saccade::server {

// 8 bits grey, one class a pixel. INTERNAL if the labels do not fill the size; otherwise as GreyPng.
absl::StatusOr<std::string> LabelMapPng(const models::Segmentation& result);

// width * height bytes, row by row. INTERNAL if the labels do not fill the size.
absl::StatusOr<std::string> LabelMapBytes(const models::Segmentation& result);

}  // namespace saccade::server
