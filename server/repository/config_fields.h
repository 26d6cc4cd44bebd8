// Every field of Triton's model configuration, and what the daemon makes of it: one table, which the loader
// follows and documentation is made from.
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
  // It does not change answers: passed over, with a warning.
  kIgnored,
  // Without it answers would be others than its author expects: the model is not loaded.
  kRefused,
};

// "works", "ignored", "refused".
const char* NameOf(FieldSupport support);

struct ConfigField {
  // From the top, without indices: "instance_group.count". What lies below it is treated alike, unless it has
  // a row of its own.
  const char* path;
  FieldSupport support;
  // Of what works: its bounds, if it has any. Else why not, or what to do instead.
  const char* note;
};

// In the order of the schema.
absl::Span<const ConfigField> ConfigFields();

// INVALID_ARGUMENT for the first field that is set and refused; a sentence in `warnings` for each field that
// is set and passed over.
absl::Status CheckFields(const inference::ModelConfig& config, const ConfigCheck& check,
                         std::vector<std::string>* warnings);

}  // namespace saccade::server
