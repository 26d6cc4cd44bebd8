// GET /openapi.json: describes the routes for programs and for those who write clients.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/http/http_message.h"

namespace saccade::server {

// An OpenAPI 3.1 document of `routes`, which are those of the HTTP port, and of those of `metrics_routes`, on
// the metrics port, that the HTTP port does not have. Schemas of /v1 are made from the protobuf descriptors.
std::string OpenApiDocument(absl::Span<const HttpRoute> routes, absl::Span<const HttpRoute> metrics_routes,
                            absl::string_view server_version);

// Responds with the document of `routes` and this route. The document is made now.
HttpRoute OpenApiRoute(std::vector<HttpRoute> routes, absl::Span<const HttpRoute> metrics_routes,
                       absl::string_view server_version);

}  // namespace saccade::server
