#include "server/net/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <array>
#include <cstring>
#include <optional>
#include <string>

namespace saccade::server {
namespace {

// The IPv4 address, also if it is mapped into IPv6.
std::optional<in_addr> Ipv4Of(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) return reinterpret_cast<const sockaddr_in&>(address).sin_addr;
  if (address.ss_family != AF_INET6) return std::nullopt;
  const in6_addr& long_form = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  if (!IN6_IS_ADDR_V4MAPPED(&long_form)) return std::nullopt;
  in_addr short_form{};
  std::memcpy(&short_form, &long_form.s6_addr[12], sizeof(short_form));
  return short_form;
}

std::string TextOf(int family, const void* bits) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const char* const written = inet_ntop(family, bits, text.data(), text.size());
  return written == nullptr ? "" : written;
}

}  // namespace

Peer PeerOf(const sockaddr_storage& address, bool is_tls) {
  if (const auto ipv4 = Ipv4Of(address)) {
    return {TextOf(AF_INET, &*ipv4), (ntohl(ipv4->s_addr) >> 24) == IN_LOOPBACKNET, is_tls};
  }
  if (address.ss_family != AF_INET6) return {"", false, is_tls};
  const in6_addr& ipv6 = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  return {TextOf(AF_INET6, &ipv6), IN6_IS_ADDR_LOOPBACK(&ipv6) != 0, is_tls};
}

}  // namespace saccade::server
