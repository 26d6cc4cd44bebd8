// The files that --output has written.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace saccade::client {

// How the names of each picture's files begin: DIR/STEM, DIR/STEM-2 and so on for those that share a stem;
// "-" is called stdin. What is added ("cat.overlay.png") keeps a file from replacing the picture it came
// from.
std::vector<std::string> OutputStems(const std::string& directory, const std::vector<std::string>& pictures);

// Replaces what was at `path`. Says why if it could not be written whole.
absl::Status WriteFile(const std::string& path, absl::string_view bytes);

}  // namespace saccade::client
