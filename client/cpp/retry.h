// Decides when a failed call is worth a retry.
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace saccade::client {

// Returns how long to wait before retrying a call that failed with `status` after `repeated` retries: at
// least as long as the daemon asks for, plus a backoff that doubles with each retry up to five seconds and is
// randomised so that clients do not retry in step. Empty if the same call would fail again, may have been
// executed, or would have to wait for more than 15 seconds.
// REQUIRES: the caller did not cancel the call, so a CANCELLED comes from the server.
std::optional<absl::Duration> RetryDelay(const absl::Status& status, int repeated);

}  // namespace saccade::client
