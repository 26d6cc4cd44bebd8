// The parameters of config.pbtxt that are the daemon's own; every other one is the architecture's.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "server/repository/config_check.h"
#include "server/repository/model_settings.h"

namespace saccade::server {

// Whether `key` is one of them; its value is then set in `settings`, or an error says what is wrong with it.
//   weight                      the model's share of the device against other models', above 0
//   threads                     cores of one forward pass
//   pin                         true keeps each instance to cores of its own
//   items                       padded or flat: how detections and actions share tensors
//   max_inflight_requests       how much of the model's may be in flight
//   max_inflight_bytes
//   max_inflight_pixels
//   version_labels              names for versions, "stable=3,canary=4"
absl::StatusOr<bool> ReadDaemonParameter(const std::string& key, const std::string& value,
                                         const ConfigCheck& check, ModelSettings* settings);

}  // namespace saccade::server
