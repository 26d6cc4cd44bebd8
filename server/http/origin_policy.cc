#include "server/http/origin_policy.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/http/authority.h"

namespace saccade::server {
namespace {

constexpr size_t kShownBytes = 100;

bool IsListed(const OriginPolicy& policy, absl::string_view host) {
  return std::find(policy.allowed_hosts.begin(), policy.allowed_hosts.end(), host) !=
         policy.allowed_hosts.end();
}

// A page can give its own name any address, also this server's, but it cannot use a numeric address as its
// name.
bool IsServed(const OriginPolicy& policy, const std::string& host, const Peer& peer) {
  if (IsListed(policy, "*") || IsListed(policy, host) || IsNumericHost(host)) return true;
  return host == "localhost" && peer.is_loopback;
}

struct Origin {
  Authority authority;
  absl::string_view default_port;
};

// Nullopt for "null", which browsers send for pages without an origin, and for anything that is none.
std::optional<Origin> ParseOrigin(absl::string_view text) {
  for (const auto& [scheme, port] : {std::pair("http://", "80"), std::pair("https://", "443")}) {
    if (!absl::StartsWithIgnoreCase(text, scheme)) continue;
    auto authority = ParseAuthority(text.substr(absl::string_view(scheme).size()));
    if (!authority) return std::nullopt;
    return Origin{*std::move(authority), port};
  }
  return std::nullopt;
}

// The scheme is not compared: a proxy may have ended TLS.
bool IsSame(const Origin& origin, const Authority& host) {
  const auto port_of = [&origin](const Authority& authority) {
    return authority.port.empty() ? origin.default_port : absl::string_view(authority.port);
  };
  return origin.authority.host == host.host && port_of(origin.authority) == port_of(host);
}

bool IsForeign(const OriginPolicy& policy, absl::string_view text, const std::optional<Authority>& host) {
  const auto origin = ParseOrigin(text);
  if (!origin) return true;
  // A proxy in front may send another Host than the page's. Its name is listed then.
  if (IsListed(policy, origin->authority.host)) return false;
  return !host || !IsSame(*origin, *host);
}

// Returns the reason why a browser's request comes from another site; empty if it does not. Pages cannot set
// either header themselves.
std::string ForeignSource(const OriginPolicy& policy, const RequestHead& head,
                          const std::optional<Authority>& host) {
  bool is_same_origin = false;
  std::string foreign_origin;
  for (const auto& [name, value] : head.headers) {
    if (absl::EqualsIgnoreCase(name, "sec-fetch-site")) {
      if (absl::EqualsIgnoreCase(value, "cross-site")) return "Sec-Fetch-Site: cross-site";
      is_same_origin = absl::EqualsIgnoreCase(value, "same-origin") || absl::EqualsIgnoreCase(value, "none");
    } else if (absl::EqualsIgnoreCase(name, "origin") && IsForeign(policy, value, host)) {
      foreign_origin = absl::StrCat("Origin: ", value.substr(0, kShownBytes));
    }
  }
  return is_same_origin ? "" : foreign_origin;
}

}  // namespace

std::optional<HttpResponse> CheckOrigin(const OriginPolicy& policy, const RequestHead& head,
                                        const Peer& peer) {
  std::optional<Authority> host;
  // Browsers always send a host.
  if (!head.authority.empty()) {
    host = ParseAuthority(head.authority);
    if (!host || !IsServed(policy, host->host, peer)) {
      return HttpError(421, absl::StrCat("Host: ", head.authority.substr(0, kShownBytes),
                                         " is no name of this server; use its address, or add the name to "
                                         "--allowed-hosts"));
    }
  }
  if ((head.method == "GET" || head.method == "HEAD") && head.path == "/") return std::nullopt;
  const std::string source = ForeignSource(policy, head, host);
  if (source.empty()) return std::nullopt;
  return HttpError(403, absl::StrCat(source,
                                     " names a page of another server, which may not use this one; if "
                                     "the page is this server's, add its host to --allowed-hosts"));
}

}  // namespace saccade::server
