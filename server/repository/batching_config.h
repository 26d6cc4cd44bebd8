// Reads dynamic_batching of config.pbtxt, with Triton's meaning and checks.
#pragma once

#include "absl/status/status.h"
#include "inference/model_config.pb.h"
#include "server/repository/config_check.h"
#include "server/repository/model_settings.h"

namespace saccade::server {

// Sets settings->batching except max_batch_size, and preserve_ordering. REQUIRES: max_batch_size is set.
absl::Status ReadBatching(const inference::ModelDynamicBatching& batching, const ConfigCheck& check,
                          ModelSettings* settings);

}  // namespace saccade::server
