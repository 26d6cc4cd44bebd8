#include "server/http/http_headers.h"

#include <algorithm>

#include "absl/strings/match.h"

namespace saccade::server {

std::optional<absl::string_view> FindHeader(const HttpHeaders& headers, absl::string_view name) {
  const auto found = std::find_if(headers.begin(), headers.end(), [name](const auto& header) {
    return absl::EqualsIgnoreCase(header.first, name);
  });
  if (found == headers.end()) return std::nullopt;
  return found->second;
}

}  // namespace saccade::server
