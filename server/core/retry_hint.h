// Attaches to a rejection status the time after which a retry makes sense.
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace saccade::server {

// States that a retry may succeed after `after`, as far as is known now. The protocols add jitter, so that
// rejected clients do not all retry at once.
void SetRetryAfter(absl::Status& status, absl::Duration after);

std::optional<absl::Duration> RetryAfter(const absl::Status& status);

}  // namespace saccade::server
