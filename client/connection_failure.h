// Why there is no connection, in words: gRPC's own name neither the address nor what to do.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "client/client.h"
#include "client/target.h"

namespace saccade::client {

// UNAVAILABLE, IsUnreachable() or IsUntrusted() where it is; `message` is gRPC's. Where it says no more than
// that the daemon's certificate is not trusted, looks at that certificate: a connection of its own, for a few
// seconds at most.
absl::Status ExplainConnection(const ClientOptions& options, const Target& target,
                               const std::string& message);

}  // namespace saccade::client
