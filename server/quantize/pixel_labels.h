// Labels pictures with the files that have the truth of each pixel: masks of classes, or disparities.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/api/placement.h"
#include "server/quantize/labelled_items.h"

namespace saccade::server {

// The kind of files that a task's labels are.
struct PixelLabels {
  std::string what;                     // "PNG masks"
  std::vector<std::string> extensions;  // with the point, in lower case
};

// Finds the file of `labels` with the name of each item's first picture, whatever the extensions are.
// INVALID_ARGUMENT if `labels` is no folder or the pictures' own, if a file belongs to no picture, or if two
// have one name. Files with other extensions are left out, with a line on `warnings`. Errors and warnings of
// ListItems() and TakeLabelled().
absl::StatusOr<std::vector<LabelledItem>> LabelByFiles(const std::string& pictures, const std::string& labels,
                                                       const PixelLabels& kind,
                                                       const models::ImageInput& input,
                                                       std::ostream& warnings);

}  // namespace saccade::server
