// Converts absl::Status to HTTP.
#pragma once

#include "absl/status/status.h"
#include "server/http/http_message.h"
#include "server/protocols/retry_jitter.h"

namespace saccade::server {

// A response with {"error": message}, the HTTP status for the code, and Retry-After, spread by `jitter`, if a
// retry is useful. REQUIRES: `status` is an error.
HttpResponse ToHttp(const absl::Status& status, RetryJitter* jitter);

}  // namespace saccade::server
