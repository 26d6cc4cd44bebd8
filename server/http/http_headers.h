// The fields of an HTTP head.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace saccade::server {

// In the order in which they were sent.
using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

// The value of the first field with that name. Names are compared without case.
std::optional<absl::string_view> FindHeader(const HttpHeaders& headers, absl::string_view name);

}  // namespace saccade::server
