// The folder that `saccade init` makes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace saccade::client {

struct ModelFolder {
  // What the file is, for the user.
  std::string what;
  std::string config = {};
  // Name of the copied file in the version's folder.
  std::string file_name;
  // 0 if unknown.
  int64_t classes = 0;
  // What else the configuration needs for labels that are written later.
  std::string labels_too = {};
  std::vector<std::string> notes;
  // Further files to copy: where they are, and where to in the version's folder.
  std::vector<std::pair<std::filesystem::path, std::filesystem::path>> more_files = {};
};

// Copies the weights and writes config.pbtxt, and labels.txt unless `labels` is empty. Blocks on the file
// system.
absl::Status WriteFolder(const std::filesystem::path& folder, const ModelFolder& made,
                         const std::string& weights, const std::string& labels);

}  // namespace saccade::client
