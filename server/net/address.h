// Addresses of sockets as text.
#pragma once

#include <sys/socket.h>

#include "server/net/peer.h"

namespace saccade::server {

// The peer with `address`; its address is empty if it is neither IPv4 nor IPv6.
Peer PeerOf(const sockaddr_storage& address, bool is_tls);

}  // namespace saccade::server
