// The shadow version of a model over HTTP: GET /v1/models/{model}/shadow.
#pragma once

#include "server/catalog/catalog.h"
#include "server/http/http_message.h"
#include "server/protocols/retry_jitter.h"

namespace saccade::server {

// The pointers must outlive the route's server.
HttpRoute ShadowRoute(const Catalog* catalog, RetryJitter* retry_jitter);

}  // namespace saccade::server
