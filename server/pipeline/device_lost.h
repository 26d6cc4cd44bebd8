// Whether a pass failed because its device answers nothing any more. After an error that CUDA calls sticky
// each further call fails too, until the process ends.
#pragma once

#include "absl/status/status.h"

namespace saccade::server {

void SetDeviceLost(absl::Status& status);
bool IsDeviceLost(const absl::Status& status);

}  // namespace saccade::server
