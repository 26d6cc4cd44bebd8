// The models' current load: GET /v1/load.
#pragma once

#include "server/catalog/catalog.h"
#include "server/engine/pipeline.h"
#include "server/http/http_message.h"

namespace saccade::server {

// Responds with the counters behind the metrics, which only grow, and with what is queued and in flight.
// Clients compute rates as differences of two responses. Both arguments must outlive the route's server.
HttpRoute LiveLoadRoute(const Catalog* catalog, const Pipeline* pipeline);

}  // namespace saccade::server
