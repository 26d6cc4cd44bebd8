// instance_group of config.pbtxt.
#pragma once

#include "absl/status/status.h"
#include "inference/model_config.pb.h"
#include "server/repository/config_check.h"
#include "server/repository/model_settings.h"

namespace saccade::server {

// Sets how many instances there are, and where they compute: kEveryGpu is left for who knows how many there
// are.
absl::Status ReadInstances(const inference::ModelConfig& config, const ConfigCheck& check,
                           ModelSettings* settings);

}  // namespace saccade::server
