// absl::Status as HTTP sends it.
#pragma once

#include "absl/status/status.h"
#include "server/http/http_message.h"
#include "server/protocols/retry_jitter.h"

namespace saccade::server {

// {"error": message}, with the status that its code stands for, and Retry-After where trying again makes
// sense, spread by `jitter`. REQUIRES: `status` is an error.
HttpResponse ToHttp(const absl::Status& status, RetryJitter* jitter);

}  // namespace saccade::server
