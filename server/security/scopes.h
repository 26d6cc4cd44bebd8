// Who may call what: the one table of every method and path.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace saccade::server {

// What a token is good for. Bits, so that a token may have several.
enum class Scope : uint8_t { kOpen = 0, kPredict = 1, kAdmin = 2, kMetrics = 4 };

// "predict", "admin", "metrics"; "open" is no scope that a token has.
absl::string_view NameOf(Scope scope);
// Of the three that a token may have.
std::optional<Scope> ScopeNamed(absl::string_view name);

// What a call needs; kOpen needs no token. Nothing if the table does not have it, and then nobody may call
// it. `path` as gRPC has it: "/saccade.v1.Vision/Predict".
std::optional<Scope> ScopeOfCall(absl::string_view path);
// `method` and `route` as an HttpRoute has them: "POST", "/v2/models/{model}/infer".
std::optional<Scope> ScopeOfRoute(absl::string_view method, absl::string_view route);

}  // namespace saccade::server
