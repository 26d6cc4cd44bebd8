// Folders that hold a clip's pictures.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace saccade::client {

// Its JPEG, PNG, WebP and BMP files in the order of their names, numbers in them by value. An error, in words
// to follow the folder's name, if there is none or it cannot be read.
absl::StatusOr<std::vector<std::string>> FramesIn(const std::string& folder);

// Whether `one` comes before `other`: "f2.png" does before "f10.png".
bool ComesBefore(absl::string_view one, absl::string_view other);

}  // namespace saccade::client
