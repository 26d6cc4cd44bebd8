// The pictures with which a model is quantized.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "models/api/description.h"
#include "server/engine/item.h"

namespace saccade::server {

// Fewer say too little about the ranges.
inline constexpr size_t kMinCalibrationItems = 8;

// The files of an item: one, or the left and the right picture of a stereo pair.
using ItemFiles = std::vector<std::string>;

// Lists the items of `folder`, without hidden files and sub-folders, in the order of their names. A line on
// `warnings` has the number of the files that stand in the way of pairs. INVALID_ARGUMENT if the folder
// cannot be read or has half a pair.
absl::StatusOr<std::vector<ItemFiles>> ListItems(const std::string& folder, const models::ImageInput& input,
                                                 std::ostream& warnings);

// Reads the items `all`; if there are more than `max_items`, some of them, evenly spread. Files that cannot
// be decoded are left out, and others take their places. A line on `warnings` has their number and the first
// one's name. INVALID_ARGUMENT, naming `folder`, if fewer than kMinCalibrationItems can be used of those that
// are tried, which are at most 16 times as many as are wanted.
absl::StatusOr<std::vector<Item>> ReadCalibrationItems(const std::string& folder,
                                                       absl::Span<const ItemFiles> all,
                                                       const models::ImageInput& input, size_t max_items,
                                                       std::ostream& warnings);

}  // namespace saccade::server
