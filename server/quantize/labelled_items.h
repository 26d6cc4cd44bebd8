// The labelled items of a folder, for a task with labels: each item's files and what the right answer is.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/api/description.h"
#include "server/quantize/calibration_items.h"

namespace saccade::server {

struct LabelledItem {
  ItemFiles files;
  // A classification's class; -1 for other tasks.
  int64_t label = -1;
  // The file that has the class or the disparity of each pixel; empty for a classification.
  std::string truth = {};
};

// UNIMPLEMENTED, saying what to do instead, if quantizing does not read labels of this task.
absl::Status CheckTaskHasLabels(models::Task task);

// Lists the items of the folder `pictures` with their labels, in the order of their names. `labels` is
//   classification  a list (label_lines.h), or the folder `pictures` itself, which then has a folder of
//   pictures
//                   for each class
//   segmentation    a folder of PNG masks with the pictures' names
//   stereo          a folder of disparities, PFM or PNG of 16 bits, with the left pictures' names
// Lines on `warnings` have the numbers of the files that are no pictures and no labels. The files with the
// pixels' truth are not read yet. INVALID_ARGUMENT says which pictures have no label, which labels have no
// picture, and which are no class. REQUIRES: CheckTaskHasLabels(description.task) is OK.
absl::StatusOr<std::vector<LabelledItem>> ListLabelledItems(const std::string& pictures,
                                                            const std::string& labels,
                                                            const models::Description& description,
                                                            std::ostream& warnings);

}  // namespace saccade::server
