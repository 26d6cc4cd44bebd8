// What the models do right now, for whoever looks on: GET /v1/load.
#pragma once

#include "server/http/http_server.h"
#include "server/pipeline/catalog.h"
#include "server/pipeline/pipeline.h"

namespace saccade::server {

// Answers the counters behind the metrics, which only grow, and how much waits and is held now: rates are
// differences of two answers. Both must outlive the server that the route is given to.
HttpRoute LiveLoadRoute(const Catalog* catalog, const Pipeline* pipeline);

}  // namespace saccade::server
