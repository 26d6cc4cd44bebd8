// The shadow version of a model over HTTP: what was found of it at GET /v1/models/{model}/shadow,
// and the pictures on whose answers the versions differ, as the clients sent them, below that.
#pragma once

#include <vector>

#include "server/catalog/catalog.h"
#include "server/http/http_message.h"
#include "server/protocols/retry_jitter.h"

namespace saccade::server {

// The pointers must outlive the routes' server.
std::vector<HttpRoute> ShadowRoutes(const Catalog* catalog, RetryJitter* retry_jitter);

}  // namespace saccade::server
