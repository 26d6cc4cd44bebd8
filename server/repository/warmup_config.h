// Reads model_warmup of config.pbtxt.
#pragma once

#include "absl/status/status.h"
#include "inference/model_config.pb.h"
#include "server/repository/config_check.h"
#include "server/repository/model_settings.h"

namespace saccade::server {

// Sets settings->warmups. An input's file_path is still the name from the configuration. REQUIRES:
// max_batch_size is set.
absl::Status ReadWarmups(const inference::ModelConfig& config, const ConfigCheck& check,
                         ModelSettings* settings);

}  // namespace saccade::server
