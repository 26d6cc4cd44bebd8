// The table of all gRPC methods and HTTP routes, with the scope that each requires.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace saccade::server {

// A permission of a token. The values are bits, because a token may have several.
enum class Scope : uint8_t { kOpen = 0, kPredict = 1, kAdmin = 2, kMetrics = 4 };

// "predict", "admin", "metrics"; also "open", which is not a scope of tokens.
absl::string_view NameOf(Scope scope);
// Finds one of the three scopes that a token may have.
std::optional<Scope> ScopeNamed(absl::string_view name);

// The scope that a call requires; kOpen requires no token. nullopt if the table does not contain it; such a
// call must be rejected. `path` as in gRPC: "/saccade.v1.Vision/Predict".
std::optional<Scope> ScopeOfCall(absl::string_view path);
// The same for HTTP. `method` and `route` as in HttpRoute: "POST", "/v2/models/{model}/infer".
std::optional<Scope> ScopeOfRoute(absl::string_view method, absl::string_view route);

}  // namespace saccade::server
