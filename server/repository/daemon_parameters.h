// The parameters of config.pbtxt that the daemon itself uses; all others belong to the architecture.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "server/repository/config_check.h"
#include "server/repository/model_settings.h"

namespace saccade::server {

// Returns whether `key` is one of the following, and if so sets its value in `settings`. An error describes
// an invalid value.
//   weight                      share of the device relative to other models' weights, above 0
//   threads                     number of cores of one forward pass
//   pin                         true reserves cores for each instance
//   max_precision_loss          how much of the answers precision: auto may change, 0 to 1
//   drift_window                how many items are compared with earlier ones
//   shadow                      a version that computes copies of requests, "version=4,share=0.1"
//   promote                     when it takes the other's place, "agreement >= 0.995 after 1000 requests"
//   attest                      true signs answers
//   items                       padded or flat: how detections and actions share tensors
//   max_inflight_requests       bounds on what is in flight for the model
//   max_inflight_bytes
//   max_decoded_bytes
//   max_cache_bytes             bound on the response cache that the model may use
//   version_labels              names for versions, "stable=3,canary=4"
absl::StatusOr<bool> ReadDaemonParameter(const std::string& key, const std::string& value,
                                         const ConfigCheck& check, ModelSettings* settings);

}  // namespace saccade::server
