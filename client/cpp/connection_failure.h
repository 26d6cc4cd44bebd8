// Error messages for failed connections. gRPC's own name neither the address nor what to do.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "client/cpp/client.h"
#include "client/cpp/target.h"

namespace saccade::client {

// Returns UNAVAILABLE, with IsUnreachable() or IsUntrusted() set where it applies. `message` is gRPC's. If it
// says only that the daemon's certificate is not trusted, opens a separate connection to inspect the
// certificate; this blocks for a few seconds at most.
absl::Status ExplainConnection(const ClientOptions& options, const Target& target,
                               const std::string& message);

}  // namespace saccade::client
