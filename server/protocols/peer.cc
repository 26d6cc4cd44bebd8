#include "server/protocols/peer.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace saccade::server {

std::string ClientOfPeer(absl::string_view peer) {
  if (!absl::StartsWith(peer, "ipv4:") && !absl::StartsWith(peer, "ipv6:")) return std::string(peer);
  const absl::string_view address = peer.substr(0, peer.rfind(':'));
  // gRPC percent-encodes the brackets.
  return absl::StrReplaceAll(address, {{"%5B", "["}, {"%5D", "]"}});
}

std::string ClientOfAddress(absl::string_view address) {
  if (address.empty()) return "";
  return absl::StrContains(address, ':') ? absl::StrCat("ipv6:[", address, "]")
                                         : absl::StrCat("ipv4:", address);
}

}  // namespace saccade::server
