#include "server/http/authority.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace saccade::server {
namespace {

bool IsDigit(char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); }

// RFC 3986: unreserved characters, sub-delimiters and percent-encoding.
bool IsNameCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
         absl::StrContains("-._~!$&'()*+,;=%", absl::string_view(&c, 1));
}

bool IsAddressCharacter(char c) {
  return absl::ascii_isxdigit(static_cast<unsigned char>(c)) || c == ':' || c == '.';
}

// How many bytes of `text` are the host; 0 if it does not begin with one.
size_t HostSize(absl::string_view text) {
  if (text.empty() || text[0] != '[') {
    return static_cast<size_t>(std::find_if_not(text.begin(), text.end(), IsNameCharacter) - text.begin());
  }
  const size_t end = text.find(']');
  if (end == absl::string_view::npos || end < 3) return 0;
  const absl::string_view address = text.substr(1, end - 1);
  return std::all_of(address.begin(), address.end(), IsAddressCharacter) ? end + 1 : 0;
}

}  // namespace

std::optional<Authority> ParseAuthority(absl::string_view text) {
  const size_t host_size = HostSize(text);
  Authority authority{absl::AsciiStrToLower(text.substr(0, host_size)), ""};
  if (authority.host.size() > 1 && authority.host.back() == '.') authority.host.pop_back();
  absl::string_view rest = text.substr(host_size);
  if (authority.host.empty()) return std::nullopt;
  if (rest.empty()) return authority;
  if (rest[0] != ':') return std::nullopt;
  rest.remove_prefix(1);
  if (rest.size() > 5 || !std::all_of(rest.begin(), rest.end(), IsDigit)) return std::nullopt;
  authority.port = std::string(rest);
  return authority;
}

bool IsNumericHost(const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> address;
  if (host.size() > 2 && host.front() == '[') {
    return inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), address.data()) == 1;
  }
  return inet_pton(AF_INET, host.c_str(), address.data()) == 1;
}

}  // namespace saccade::server
