// Identifies the client of each request when it arrives, and counts the request.
#pragma once

#include <functional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/http/caller.h"
#include "server/security/tokens.h"

namespace saccade::server {

// Counts one request against the rate limit of `client`; RESOURCE_EXHAUSTED, with the time until a retry, if
// the limit is exceeded.
using CountRequest = std::function<absl::Status(absl::string_view client)>;

// A client is its token, if that is known, else its address. Every request is counted, also one that is
// malformed, names nothing that exists or has a wrong token; only health checks are not, because a probe that
// is rejected restarts the daemon. `tokens` may be null and must outlive the check; `count` may be null.
ArrivalCheck IdentifyClients(const Tokens* tokens, CountRequest count);

}  // namespace saccade::server
