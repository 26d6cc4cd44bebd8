#include "server/http/caller.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/net/connection_limits.h"

namespace saccade::server {
namespace {

std::string WithFamily(const std::string& address) {
  if (address.empty()) return "";
  return absl::StrContains(address, ':') ? absl::StrCat("ipv6:[", address, "]")
                                         : absl::StrCat("ipv4:", address);
}

}  // namespace

Caller CallerAt(const Peer& peer) {
  return {.client = WithFamily(LimitKeyOf(peer.address)), .address = WithFamily(peer.address)};
}

absl::StatusOr<Caller> CheckArrival(const ArrivalCheck& check, const RequestHead& head, const Peer& peer) {
  if (check == nullptr) return CallerAt(peer);
  return check(head, peer);
}

}  // namespace saccade::server
