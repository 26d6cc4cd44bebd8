// Token checks over HTTP.
#pragma once

#include "server/http/http_service.h"
#include "server/security/tokens.h"

namespace saccade::server {

// The guard answers 401 or 403 to requests that the client is not allowed to make. `tokens` must outlive it.
HttpGuard TokenGuard(const Tokens* tokens);

}  // namespace saccade::server
