#include "client/cpp/target.h"

#include <arpa/inet.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace saccade::client {
namespace {

template <typename Address>
bool IsAddress(int family, absl::string_view host) {
  Address parsed;
  return inet_pton(family, std::string(host).c_str(), &parsed) == 1;
}

absl::Status Malformed(absl::string_view url, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("'", url, "' is not a valid address: ", why, "; expected HOST:PORT, e.g. 127.0.0.1:8001"));
}

}  // namespace

absl::StatusOr<Target> ParseTarget(absl::string_view url) {
  if (absl::StartsWith(url, "unix:")) return Target{.uri = std::string(url), .local = true};
  for (absl::string_view scheme : {"dns:", "ipv4:", "ipv6:"}) {
    if (absl::StartsWith(url, scheme)) return Target{.uri = std::string(url)};
  }
  if (absl::StrContains(url, "://")) {
    return Malformed(url, "URL schemes are not supported, and TLS is a separate option");
  }

  const size_t colon = url.rfind(':');
  if (colon == absl::string_view::npos) return Malformed(url, "the port is missing");
  absl::string_view host = url.substr(0, colon);
  int port = 0;
  if (!absl::SimpleAtoi(url.substr(colon + 1), &port) || port < 1 || port > 65535) {
    return Malformed(url, "the port must be a number from 1 to 65535");
  }
  if (host.empty()) return Malformed(url, "the host is missing");

  if (host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
    if (!IsAddress<in6_addr>(AF_INET6, host)) return Malformed(url, "the host is not an IPv6 address");
    return Target{absl::StrCat("ipv6:[", host, "]:", port), host == "::1", std::string(url)};
  }
  if (host.find_first_of(":/[] \t") != absl::string_view::npos) {
    return Malformed(url, "the host name has an invalid character (an IPv6 address must be in brackets)");
  }
  if (IsAddress<in_addr>(AF_INET, host)) {
    return Target{absl::StrCat("ipv4:", host, ":", port), absl::StartsWith(host, "127."), std::string(url)};
  }
  return Target{absl::StrCat("dns:///", host, ":", port), host == "localhost", std::string(url)};
}

std::string ShuffledAddresses(const std::string& uri) {
  const size_t colon = uri.find(':');
  const absl::string_view scheme = absl::string_view(uri).substr(0, colon);
  if (scheme != "ipv4" && scheme != "ipv6") return uri;
  std::vector<std::string> addresses = absl::StrSplit(uri.substr(colon + 1), ',');
  std::shuffle(addresses.begin(), addresses.end(), std::minstd_rand(std::random_device{}()));
  return absl::StrCat(scheme, ":", absl::StrJoin(addresses, ","));
}

}  // namespace saccade::client
