// Separates the items that have a label from the files beside them.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/quantize/labelled_items.h"

namespace saccade::server {

// An item of the folder, and whether a label was found for it.
struct MaybeLabelled {
  LabelledItem item;
  bool has_label = false;
};

// Returns the items that have a label. Of the others, those that are no pictures are left out, with a line on
// `warnings`; INVALID_ARGUMENT if there are pictures among them. `expected` says where each label belongs: "a
// line for each in val.txt". Reads the first bytes of each file without a label.
absl::StatusOr<std::vector<LabelledItem>> TakeLabelled(const std::string& folder,
                                                       std::vector<MaybeLabelled> items,
                                                       const std::string& expected, std::ostream& warnings);

}  // namespace saccade::server
