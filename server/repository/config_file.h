// A model's configuration: checked, and turned into settings.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/repository/model_settings.h"
#include "server/repository/text_format.h"

namespace saccade::server {

struct ConfigFile {
  // All but what lies in files of their own: labels, and warm-up data.
  ModelSettings settings;
  // Names of files beside config.pbtxt or the weights; empty if the configuration names none: parameters
  // 'labels' and 'weights', and default_model_filename.
  std::string labels_file;
  std::string weights_file;
  // label_filename of each output.
  std::vector<std::string> output_label_files;
};

// `shown` is the file's name in errors, which are INVALID_ARGUMENT and tell line and field. `folder` is the
// model's folder.
absl::StatusOr<ConfigFile> ReadSettings(const ParsedConfig& config, absl::string_view shown,
                                        absl::string_view folder);

// The same of a config.pbtxt's text.
absl::StatusOr<ConfigFile> ParseConfig(const std::string& text, absl::string_view shown,
                                       absl::string_view folder);

}  // namespace saccade::server
