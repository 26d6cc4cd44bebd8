// Fingerprints of a model's files, to detect changes without reading them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace saccade::server {

// Each string lists name, size, modification time and inode of every file. Hidden files are excluded, as are
// folders other than versions and warmup/, so that a version can be written under such a name (3.tmp, .3) and
// then renamed.
struct ModelStamp {
  // config.pbtxt, labels and warm-up data, which all versions share.
  std::string shared;
  std::map<int64_t, std::string> versions;

  friend bool operator==(const ModelStamp& a, const ModelStamp& b) {
    return a.shared == b.shared && a.versions == b.versions;
  }
  friend bool operator!=(const ModelStamp& a, const ModelStamp& b) { return !(a == b); }
};

// Blocks on the file system. Thread-safe. NOT_FOUND if there is no such folder.
absl::StatusOr<ModelStamp> StampModel(const std::string& repository, absl::string_view name);

// Returns the names of the model folders, sorted. An error only if the repository itself cannot be read.
// Blocks on the file system. Thread-safe.
absl::StatusOr<std::vector<std::string>> ListModels(const std::string& repository);

// Whether ListModels() would return the name. Looks at this folder alone, however many others there are.
bool HoldsModel(const std::string& repository, absl::string_view name);

}  // namespace saccade::server
