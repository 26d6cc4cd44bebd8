// When a failed call is worth repeating.
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace saccade::client {

// How long to wait before the call is made again that failed with `status`, having been repeated `repeated`
// times: no less than the daemon asks for, twice as long each time, and never the same for two clients, which
// would come together again. None if the same call would
// fail again, may have been computed, or is to wait for more than a quarter of a minute.
// REQUIRES: the caller did not give the call up, so that CANCELLED is the server's.
std::optional<absl::Duration> RetryDelay(const absl::Status& status, int repeated);

}  // namespace saccade::client
