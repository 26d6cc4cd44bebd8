// dynamic_batching of config.pbtxt, as Triton reads and checks it.
#pragma once

#include "absl/status/status.h"
#include "inference/model_config.pb.h"
#include "server/repository/config_check.h"
#include "server/repository/model_settings.h"

namespace saccade::server {

// Sets settings->batching but for max_batch_size, which it REQUIRES to be set, and preserve_ordering.
absl::Status ReadBatching(const inference::ModelDynamicBatching& batching, const ConfigCheck& check,
                          ModelSettings* settings);

}  // namespace saccade::server
