// Pictures and videos as they lie on disk or come through a pipe.
#pragma once

#include <cstdint>
#include <fstream>
#include <istream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace saccade::client {

// The whole file; "-" reads `in` to its end. Errors say what is wrong with the file: missing, no permission,
// a directory, empty, or over `max_bytes`; `expected` is what it should be.
absl::StatusOr<std::string> ReadInput(const std::string& path, std::istream& in, int64_t max_bytes,
                                      absl::string_view expected);

// OK for a file that can be opened, in the same words otherwise.
absl::Status OpenInput(const std::string& path, absl::string_view expected, std::ifstream& file);

}  // namespace saccade::client
