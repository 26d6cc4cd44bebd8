// Reads input files, or standard input.
#pragma once

#include <cstdint>
#include <fstream>
#include <istream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace saccade::client {

// Returns the content of the file; "-" reads `in` to its end. Errors say what is wrong with the file:
// missing, no permission, a directory, empty, or larger than `max_bytes`. `expected` describes the expected
// content.
absl::StatusOr<std::string> ReadInput(const std::string& path, std::istream& in, int64_t max_bytes,
                                      absl::string_view expected);

// Opens the file. Errors are those of ReadInput.
absl::Status OpenInput(const std::string& path, absl::string_view expected, std::ifstream& file);

}  // namespace saccade::client
