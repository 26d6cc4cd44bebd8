// Which web pages may use the server, and under which names it is reached.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/http/exchange.h"
#include "server/http/http_message.h"

namespace saccade::server {

// Browsers send requests of any page to any server. A page of another site must not reach this one, neither
// directly nor through a name that its DNS points here (rebinding).
struct OriginPolicy {
  // Host names that are served, without ports, lower case; "*" serves all. "localhost" is always served to
  // loopback clients, and a numeric address to all: no DNS is involved.
  std::vector<std::string> allowed_hosts = {"*"};
};

// The response for a request that the policy does not allow: 403 or 421, saying which header and which flag
// (--allowed-hosts). A request without Origin and Sec-Fetch-Site is no browser's. Foreign origins, and
// Sec-Fetch-Site: cross-site, are refused for everything but GET and HEAD of the path "/".
std::optional<HttpResponse> CheckOrigin(const OriginPolicy& policy, const RequestHead& head,
                                        const Peer& peer);

}  // namespace saccade::server
