// The caller: the client that sends a request, by its token or its address.
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "server/http/exchange.h"
#include "server/net/peer.h"

namespace saccade::server {

struct Caller {
  // Key for limits that hold for each client: "ipv4:10.0.0.7"; "ipv6:[2001:db8::/64]", because one client
  // usually has all of those; or "token:" and the beginning of the digest of the client's token.
  std::string client;
  // "ipv4:10.0.0.7", "ipv6:[::1]"; empty if the address is unknown.
  std::string address;
};

// The caller as its address alone names it.
Caller CallerAt(const Peer& peer);

// Called once for each request, when its head has come and before anything else is looked at. Returns the
// caller, or an error to be answered.
using ArrivalCheck = std::function<absl::StatusOr<Caller>(const RequestHead& head, const Peer& peer)>;

// What `check` returns; without one, CallerAt().
absl::StatusOr<Caller> CheckArrival(const ArrivalCheck& check, const RequestHead& head, const Peer& peer);

}  // namespace saccade::server
