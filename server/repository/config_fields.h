// The table of all fields of Triton's model configuration and how the daemon treats them. The loader follows
// it, and docs/compatibility.md repeats it (a test compares the two).
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "inference/model_config.pb.h"
#include "server/repository/config_check.h"

namespace saccade::server {

enum class FieldSupport {
  kWorks,
  // The field does not change answers: it is ignored with a warning.
  kIgnored,
  // Without the field, answers would differ from what its author expects: the model is not loaded.
  kRefused,
};

// "works", "ignored", "refused".
const char* NameOf(FieldSupport support);

struct ConfigField {
  // Path from the top, without indices: "instance_group.count". Fields below it are treated alike, unless
  // they have a row of their own.
  const char* path;
  FieldSupport support;
  // For kWorks: its limits, if any. Otherwise the reason, or what to do instead.
  const char* note;
};

// In the order of the schema.
absl::Span<const ConfigField> ConfigFields();

// Returns INVALID_ARGUMENT for the first field that is set and refused. Adds a sentence to `warnings` for
// each field that is set and ignored.
absl::Status CheckFields(const inference::ModelConfig& config, const ConfigCheck& check,
                         std::vector<std::string>* warnings);

}  // namespace saccade::server
