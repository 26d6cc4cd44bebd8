// Reads labels.txt: one class name per line; the first line is class 0.
#pragma once

#include <string>
#include <vector>
#include "absl/strings/string_view.h"

#include "absl/status/statusor.h"

namespace saccade::server {

// Accepts LF and CRLF, an optional byte order mark and an optional line end after the last line. An empty
// line before the end is an error, because it would shift all later classes. `shown` is the name of the file
// in errors.
absl::StatusOr<std::vector<std::string>> ParseLabels(absl::string_view text, absl::string_view shown);

}  // namespace saccade::server
