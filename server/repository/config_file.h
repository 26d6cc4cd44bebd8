// config.pbtxt: parsed, checked and turned into settings.
#pragma once

#include <string>
#include "absl/strings/string_view.h"

#include "absl/status/statusor.h"
#include "server/repository/repository.h"

namespace saccade::server {

struct ConfigFile {
  // All but the labels, which lie in a file of their own.
  ModelSettings settings;
  // Names of files, empty if the configuration names none: parameters 'labels' and 'weights'.
  std::string labels_file;
  std::string weights_file;
};

// `shown` is the file's name in errors, which are INVALID_ARGUMENT and tell line and field. `folder` is the
// model's folder.
absl::StatusOr<ConfigFile> ParseConfig(const std::string& text, absl::string_view shown,
                                       absl::string_view folder);

}  // namespace saccade::server
