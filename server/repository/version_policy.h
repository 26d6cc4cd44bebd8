// Reads version_policy of config.pbtxt, and the labels of versions.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "inference/model_config.pb.h"
#include "server/repository/config_check.h"
#include "server/repository/model_settings.h"

namespace saccade::server {

absl::Status ReadVersionPolicy(const inference::ModelVersionPolicy& message, const ConfigCheck& check,
                               VersionPolicy* policy);

// Parses "stable=3,canary=4", the value of the parameter version_labels. A label cannot be a number, so that
// a request's version is unambiguous.
absl::Status ReadVersionLabels(absl::string_view value, absl::string_view field, const ConfigCheck& check,
                               std::map<std::string, int64_t>* labels);

// Returns the elements of `present` that the policy selects. Both are ascending.
std::vector<int64_t> Chosen(const VersionPolicy& policy, const std::vector<int64_t>& present);

}  // namespace saccade::server
