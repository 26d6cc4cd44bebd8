// The part of a URL that names a server: "example.com:8000", "[::1]:8000".
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace saccade::server {

struct Authority {
  // Lower case, without a dot at the end; an IPv6 address has its brackets. Never empty.
  std::string host;
  // Digits; empty if there is none.
  std::string port;
};

// Nullopt if `text` is no host with an optional port: user names, paths and spaces are not allowed.
std::optional<Authority> ParseAuthority(absl::string_view text);

// Whether `host`, as Authority has it, is a numeric address.
bool IsNumericHost(const std::string& host);

}  // namespace saccade::server
