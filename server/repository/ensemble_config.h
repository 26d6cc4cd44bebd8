// Reads ensemble_scheduling of config.pbtxt.
#pragma once

#include "absl/status/status.h"
#include "inference/model_config.pb.h"
#include "server/repository/config_check.h"
#include "server/repository/model_settings.h"

namespace saccade::server {

// Sets settings->ensemble, with the steps in an order in which the inputs of each are available. Does not
// check whether the models exist and fit together. REQUIRES: inputs and outputs are set.
absl::Status ReadEnsemble(const inference::ModelEnsembling& ensemble, const ConfigCheck& check,
                          ModelSettings* settings);

}  // namespace saccade::server
