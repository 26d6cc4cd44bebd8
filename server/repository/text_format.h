// Parses configurations, with errors that state file, line, column, the line itself, and what to do.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "inference/model_config.pb.h"
#include "server/repository/config_lines.h"

namespace saccade::server {

struct ParsedConfig {
  inference::ModelConfig message;
  // The fields that the text contains, and their lines; a proto3 message does not record presence of numbers.
  ConfigLines lines;
};

// Parses a config.pbtxt in protobuf's text format. `shown` is the name of the file in errors.
absl::StatusOr<ParsedConfig> ParseTextFormat(const std::string& text, absl::string_view shown);

// Parses protobuf's JSON format, with which clients override a model's file when they load it. `lines` stays
// empty.
absl::StatusOr<ParsedConfig> ParseJson(const std::string& text, absl::string_view shown);

}  // namespace saccade::server
