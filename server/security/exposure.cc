#include "server/security/exposure.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace saccade::server {

bool IsLoopback(const std::string& host) {
  if (host == "localhost") return true;
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  const std::string number = bracketed ? host.substr(1, host.size() - 2) : host;
  in_addr four{};
  if (inet_pton(AF_INET, number.c_str(), &four) == 1) return ntohl(four.s_addr) >> 24 == 127;
  in6_addr six{};
  return inet_pton(AF_INET6, number.c_str(), &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

absl::Status CheckExposure(const Exposure& exposure) {
  const auto open = std::find_if_not(exposure.hosts.begin(), exposure.hosts.end(), IsLoopback);
  if (open == exposure.hosts.end()) return absl::OkStatus();
  if (!exposure.requires_client_certificate && !exposure.requires_token) {
    return absl::InvalidArgumentError(
        absl::StrCat("listening on ", *open,
                     " lets other machines call without authentication: pass --host 127.0.0.1 for "
                     "this machine only; or --tls-cert and --tls-key, with --token-file or --tls-client-ca; "
                     "or --insecure if "
                     "every client that reaches the ports may do everything"));
  }
  if (exposure.requires_token && !exposure.tls) {
    return absl::InvalidArgumentError(
        absl::StrCat("listening on ", *open,
                     " with --token-file but without TLS sends tokens unencrypted over the network: pass "
                     "--tls-cert and --tls-key; or --host 127.0.0.1 behind a proxy with TLS; or "
                     "--insecure if something else "
                     "protects the network"));
  }
  return absl::OkStatus();
}

}  // namespace saccade::server
