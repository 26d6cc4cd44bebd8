// Checks a model's configuration and converts it to settings.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/repository/model_settings.h"
#include "server/repository/text_format.h"

namespace saccade::server {

struct ConfigFile {
  // Everything except the contents of other files: labels and warm-up data.
  ModelSettings settings;
  // Names of files next to config.pbtxt or the weights, from the parameters 'labels' and 'weights' and from
  // default_model_filename; empty if the configuration names none.
  std::string labels_file;
  std::string weights_file;
  // label_filename of each output; empty where there is none.
  std::vector<std::string> output_label_files;
};

// `shown` is the name of the file in errors, which are INVALID_ARGUMENT and state line and field. `folder` is
// the name of the model's folder. `pictures` is the description beside the configuration, if there is one; it
// replaces the inputs and outputs of a program.
absl::StatusOr<ConfigFile> ReadSettings(const ParsedConfig& config, absl::string_view shown,
                                        absl::string_view folder,
                                        std::shared_ptr<const models::PictureProgram> pictures = nullptr);

// The same for the text of a config.pbtxt.
absl::StatusOr<ConfigFile> ParseConfig(const std::string& text, absl::string_view shown,
                                       absl::string_view folder);

}  // namespace saccade::server
