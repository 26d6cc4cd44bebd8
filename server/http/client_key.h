// Identifies a client in limits that hold for each client.
#pragma once

#include <string>

#include "server/net/peer.h"

namespace saccade::server {

// "ipv4:10.0.0.7", "ipv6:[::1]"; empty if the address is unknown.
std::string ClientKey(const Peer& peer);

}  // namespace saccade::server
