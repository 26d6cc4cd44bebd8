// Reads a file of labels, whose size is bounded.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace saccade::server {

// Returns the file's bytes. INVALID_ARGUMENT, naming the file, if it is no regular file, cannot be read, or
// has more than `max_bytes`. Blocks.
absl::StatusOr<std::string> ReadBoundedFile(const std::string& path, int64_t max_bytes);

}  // namespace saccade::server
