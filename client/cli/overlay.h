// A picture with its answer drawn under it.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "client/types.h"

namespace saccade::client {

// Decodes `picture`, adds a panel with a bar and a label a class below it, and writes a PNG to `path`. What
// could not be decoded or written is told in the status. Thread-safe for different paths.
absl::Status WriteOverlay(absl::string_view picture, const Classification& answer, const std::string& path);

}  // namespace saccade::client
