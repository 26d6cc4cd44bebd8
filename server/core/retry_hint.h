// Attaches to a rejection status the time after which a retry makes sense.
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace saccade::server {

// States that a retry may succeed after `after`, as far as is known now. The protocols add jitter, so that
// rejected clients do not all retry at once.
void SetRetryAfter(absl::Status& status, absl::Duration after);

// RESOURCE_EXHAUSTED with a hint to try again in a second: the server has no memory at the moment. Without a
// hint, clients take RESOURCE_EXHAUSTED for a request that is too large.
absl::Status OutOfMemory(absl::string_view message);

std::optional<absl::Duration> RetryAfter(const absl::Status& status);

}  // namespace saccade::server
