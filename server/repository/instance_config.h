// Reads instance_group of config.pbtxt.
#pragma once

#include "absl/status/status.h"
#include "inference/model_config.pb.h"
#include "server/repository/config_check.h"
#include "server/repository/model_settings.h"

namespace saccade::server {

// Sets the number of instances and their devices. kEveryGpu is left for the caller, who knows the number of
// GPUs (PlaceOnEveryGpu).
absl::Status ReadInstances(const inference::ModelConfig& config, const ConfigCheck& check,
                           ModelSettings* settings);

}  // namespace saccade::server
