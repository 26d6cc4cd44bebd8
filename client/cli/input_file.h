// Pictures as they lie on disk or come through a pipe.
#pragma once

#include <istream>
#include <string>

#include "absl/status/statusor.h"

namespace saccade::client {

// The whole file; "-" reads `in` to its end. Errors say what is wrong with the file: missing, no permission,
// a directory, empty, or over `max_bytes`.
absl::StatusOr<std::string> ReadPicture(const std::string& path, std::istream& in, int64_t max_bytes);

}  // namespace saccade::client
