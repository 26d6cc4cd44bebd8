// The pictures with which a model is quantized.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/api/description.h"
#include "server/engine/item.h"

namespace saccade::server {

// Fewer say too little about the ranges.
inline constexpr size_t kMinCalibrationItems = 8;

// Reads the files of `folder`, without hidden ones and sub-folders, in the order of their names; if there are
// more than `max_items`, some of them, evenly spread. Files that cannot be decoded are left out, with a line
// each on `warnings`. INVALID_ARGUMENT if the folder cannot be read, or fewer than kMinCalibrationItems are
// left.
absl::StatusOr<std::vector<Item>> ReadCalibrationItems(const std::string& folder,
                                                       const models::ImageInput& input, size_t max_items,
                                                       std::ostream& warnings);

}  // namespace saccade::server
