// The files that --output has written.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace saccade::client {

// How the names of each picture's files begin: DIR/STEM, DIR/STEM-2 and so on for those that share a stem;
// "-" is called stdin. What is added ("cat.overlay.png") keeps a file from replacing the picture it came
// from.
std::vector<std::string> OutputStems(const std::string& directory, const std::vector<std::string>& pictures);

// One part after the other. Replaces what was at `path`. Says why if it could not be written whole.
absl::Status WriteFile(const std::string& path, std::initializer_list<absl::string_view> parts);

}  // namespace saccade::client
