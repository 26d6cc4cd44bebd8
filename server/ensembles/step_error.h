// The error of an ensemble's step as the error of the ensemble's request.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace saccade::server {

// Prefixes `why` with the step's name. Keeps the payloads except the bad field: it names a field of the
// step's request, not of the client's. NOT_FOUND becomes UNAVAILABLE, because the model existed when the
// ensemble was checked.
absl::Status WithStepName(const absl::Status& why, const std::string& step);

}  // namespace saccade::server
