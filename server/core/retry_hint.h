// When a refused client may come again, carried by the status that refuses it.
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace saccade::server {

// Says that trying again makes sense after `after`, as far as is known now; the protocols spread it, so that
// the refused do not all come back at once.
void SetRetryAfter(absl::Status& status, absl::Duration after);

std::optional<absl::Duration> RetryAfter(const absl::Status& status);

}  // namespace saccade::server
