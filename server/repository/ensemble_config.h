// ensemble_scheduling of config.pbtxt.
#pragma once

#include "absl/status/status.h"
#include "inference/model_config.pb.h"
#include "server/repository/config_check.h"
#include "server/repository/model_settings.h"

namespace saccade::server {

// Sets settings->ensemble, its steps in an order in which each one's inputs are there. REQUIRES: inputs and
// outputs are set. Whether the models exist and fit is not looked at.
absl::Status ReadEnsemble(const inference::ModelEnsembling& ensemble, const ConfigCheck& check,
                          ModelSettings* settings);

}  // namespace saccade::server
