// Parses a daemon's address.
#pragma once

#include <string>
#include "absl/strings/string_view.h"

#include "absl/status/statusor.h"

namespace saccade::client {

struct Target {
  // The gRPC target, e.g. dns:///saccade:8001 or ipv4:127.0.0.1:8001.
  std::string uri;
  // True if the address is on this machine: an HTTP proxy from the environment is not used, and nobody else
  // can read the traffic.
  bool local = false;
  // HOST:PORT for sockets, an IPv6 address in brackets; empty for gRPC's own schemes.
  std::string host_port = "";
};

// Accepts HOST:PORT, where HOST is a name, an IPv4 address or an IPv6 address in brackets, or a target with
// one of gRPC's schemes dns:, ipv4:, ipv6:, unix:. INVALID_ARGUMENT for anything else.
absl::StatusOr<Target> ParseTarget(absl::string_view url);

// The target with the addresses of a list (ipv4:A,B or ipv6:A,B) in a random order; other targets as they
// are.
std::string ShuffledAddresses(const std::string& uri);

}  // namespace saccade::client
