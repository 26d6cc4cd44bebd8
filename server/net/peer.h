// The client's end of a connection.
#pragma once

#include <string>

namespace saccade::server {

struct Peer {
  // Numeric address without the port: "127.0.0.1", "::1"; empty if unknown. IPv4 addresses that came over an
  // IPv6 socket are written as IPv4.
  std::string address;
  bool is_loopback = false;
  // Whether the connection is encrypted.
  bool is_tls = false;
};

}  // namespace saccade::server
