// What a model's files look like from outside, to tell whether they changed without reading them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace saccade::server {

// Each text holds every file's name, size, time of change and inode. Hidden files are no part of it, nor are
// folders that are neither a version nor warmup/: under such a name (3.tmp, .3) a version can be written and
// then renamed.
struct ModelStamp {
  // config.pbtxt, labels, warm-up data: what all versions share.
  std::string shared;
  std::map<int64_t, std::string> versions;

  friend bool operator==(const ModelStamp& a, const ModelStamp& b) {
    return a.shared == b.shared && a.versions == b.versions;
  }
  friend bool operator!=(const ModelStamp& a, const ModelStamp& b) { return !(a == b); }
};

// Block on the file system; thread-safe. NOT_FOUND if there is no such folder.
absl::StatusOr<ModelStamp> StampModel(const std::string& repository, absl::string_view name);

// Names of the model folders, sorted. An error only if the repository itself cannot be read.
absl::StatusOr<std::vector<std::string>> ListModels(const std::string& repository);

}  // namespace saccade::server
