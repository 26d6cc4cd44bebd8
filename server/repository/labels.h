// labels.txt: one class name a line, the first line being class 0.
#pragma once

#include <string>
#include <vector>
#include "absl/strings/string_view.h"

#include "absl/status/statusor.h"

namespace saccade::server {

// Takes LF and CRLF, with or without a byte order mark and a last line end. An empty line before the end is
// an error, for it would shift every class after it. `shown` is the file's name in errors.
absl::StatusOr<std::vector<std::string>> ParseLabels(absl::string_view text, absl::string_view shown);

}  // namespace saccade::server
