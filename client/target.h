// How a daemon's address is written.
#pragma once

#include <string>
#include "absl/strings/string_view.h"

#include "absl/status/statusor.h"

namespace saccade::client {

struct Target {
  // What gRPC takes, e.g. dns:///saccade:8001 or ipv4:127.0.0.1:8001.
  std::string uri;
  // On this machine: an HTTP proxy of the environment has no business there, and nobody reads along on the
  // way.
  bool local = false;
  // HOST:PORT as sockets take it, an IPv6 address in brackets; empty of gRPC's own schemes.
  std::string host_port = "";
};

// Takes HOST:PORT, where HOST may be a name, an IPv4 address or an IPv6 address in brackets, or a target with
// one of gRPC's schemes dns:, ipv4:, ipv6:, unix:. Anything else is INVALID_ARGUMENT.
absl::StatusOr<Target> ParseTarget(absl::string_view url);

}  // namespace saccade::client
