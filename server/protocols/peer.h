// Who a call comes from, as far as the rate of each client is concerned.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace saccade::server {

// `peer` as gRPC tells it, without the port, which is another for each connection: "ipv4:10.0.0.7",
// "ipv6:[::1]"; what has no port stays as it is.
std::string ClientOfPeer(absl::string_view peer);

// The same of a client that speaks HTTP, by its address: "10.0.0.7", "::1"; empty if that is.
std::string ClientOfAddress(absl::string_view address);

}  // namespace saccade::server
