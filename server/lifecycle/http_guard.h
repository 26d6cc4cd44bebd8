// Tokens over HTTP.
#pragma once

#include "server/http/http_server.h"
#include "server/security/tokens.h"

namespace saccade::server {

// Answers 401 or 403 in place of what the client may not have. `tokens` must outlive it.
HttpGuard TokenGuard(const Tokens* tokens);

}  // namespace saccade::server
