// Labels pictures with their classes: by a list, or by the folders that they lie in.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/quantize/class_names.h"
#include "server/quantize/labelled_items.h"

namespace saccade::server {

// Labels the files of `folder` by the lines of the list (label_lines.h). The first line of a .csv is a header
// if it names neither a file of the folder nor a class. INVALID_ARGUMENT if a line names no file, no class,
// or a file a second time. Errors and warnings of TakeLabelled().
absl::StatusOr<std::vector<LabelledItem>> LabelByList(const std::string& folder, const std::string& list,
                                                      const ClassNames& classes, std::ostream& warnings);

// Labels the pictures in the folders of `folder`. A folder's name is a class's name or number; if no name is
// one, and there are as many folders as classes, they are the classes in the order of the names, which a line
// on `warnings` says. INVALID_ARGUMENT if a folder stands for no class.
absl::StatusOr<std::vector<LabelledItem>> LabelByFolders(const std::string& folder, const ClassNames& classes,
                                                         std::ostream& warnings);

}  // namespace saccade::server
