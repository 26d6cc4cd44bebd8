// A configuration's text with errors for people: file, line, column, the line itself, and what to do.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "inference/model_config.pb.h"
#include "server/repository/config_lines.h"

namespace saccade::server {

struct ParsedConfig {
  inference::ModelConfig message;
  // Proto3 has no presence for numbers; the parser knows, and where they stand.
  ConfigLines lines;
};

// Protobuf's text format, of a config.pbtxt. `shown` is the file's name in errors.
absl::StatusOr<ParsedConfig> ParseTextFormat(const std::string& text, absl::string_view shown);

// Protobuf's JSON, which clients send to load a model otherwise than its file says; it has no lines.
absl::StatusOr<ParsedConfig> ParseJson(const std::string& text, absl::string_view shown);

}  // namespace saccade::server
