// The form of the keys that name clients in limits.
#pragma once

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace saccade::server {

// Begins the key of a client that is known by its token; other keys are addresses (server/http/caller.h).
inline constexpr absl::string_view kTokenKeyPrefix = "token:";

inline bool IsTokenKey(absl::string_view client) { return absl::StartsWith(client, kTokenKeyPrefix); }

}  // namespace saccade::server
