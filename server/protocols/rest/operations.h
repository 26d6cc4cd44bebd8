// What the OpenAPI document says about each route, and the schemas that are not made from protobuf messages.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace saccade::server {

struct Operation {
  absl::string_view method;
  // As in HttpRoute. One for a model stands for the same with "/versions/{version}" after the model too.
  absl::string_view path;
  absl::string_view summary;
  // The name of the schema of the JSON in the request's body; empty if it takes none.
  absl::string_view request = "";
  // The name of the schema of the JSON in the 200 response, or the response's media type; empty for an empty
  // body.
  absl::string_view response = "";
  // A 5xx that is no sign of a fault, and its reason; 0 for none.
  int failure = 0;
  absl::string_view failure_reason = "";
};

absl::Span<const Operation> Operations();

// The entry for a route; null if there is none.
const Operation* FindOperation(absl::string_view method, absl::string_view path);

// JSON: an object of the schemas of /v2, /v1/load and errors, by name.
std::string WrittenSchemas();

}  // namespace saccade::server
