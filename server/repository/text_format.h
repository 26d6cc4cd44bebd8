// Protobuf text format with errors for people: file, line, column, the line itself, and what to do.
#pragma once

#include <string>
#include "absl/strings/string_view.h"

#include "absl/status/statusor.h"
#include "inference/model_config.pb.h"

namespace saccade::server {

struct ParsedConfig {
  inference::ModelConfig message;
  // Proto3 has no presence for numbers; the parser knows.
  bool has_max_batch_size = false;
};

absl::StatusOr<ParsedConfig> ParseTextFormat(const std::string& text, absl::string_view shown);

}  // namespace saccade::server
