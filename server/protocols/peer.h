// Identifies the client of a call, for the rate limit per client.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace saccade::server {

// Removes the port, which differs between connections, from gRPC's peer: "ipv4:10.0.0.7", "ipv6:[::1]". A
// peer without port is returned unchanged.
std::string ClientOfPeer(absl::string_view peer);

// The same for an HTTP client by its address: "10.0.0.7", "::1". Empty if `address` is empty.
std::string ClientOfAddress(absl::string_view address);

}  // namespace saccade::server
