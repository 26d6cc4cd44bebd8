#include "server/http/client_key.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace saccade::server {

std::string ClientKey(const Peer& peer) {
  if (peer.address.empty()) return "";
  return absl::StrContains(peer.address, ':') ? absl::StrCat("ipv6:[", peer.address, "]")
                                              : absl::StrCat("ipv4:", peer.address);
}

}  // namespace saccade::server
