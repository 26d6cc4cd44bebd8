// Files in the state folder, which a daemon's start reads and which are replaced as a whole.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace saccade::server {

// Reads at most `max_bytes` and one more, which shows that there are too many. NOT_FOUND if there is no such
// file. Never waits for the writer of a pipe. Blocks on the file system.
absl::StatusOr<std::string> ReadStateFile(const std::string& path, size_t max_bytes);

// Replaces the file `path` in `folder`, which is created if it is not there. Either the old or the new file
// is there, whenever the daemon ends. Blocks on the file system.
absl::Status ReplaceStateFile(const std::string& folder, const std::string& path, const std::string& text);

}  // namespace saccade::server
