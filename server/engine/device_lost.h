// Marks a status whose pass failed because its device no longer responds. After an error that CUDA calls
// sticky, all later calls fail too, until the process ends.
#pragma once

#include "absl/status/status.h"

namespace saccade::server {

void SetDeviceLost(absl::Status& status);
bool IsDeviceLost(const absl::Status& status);

}  // namespace saccade::server
