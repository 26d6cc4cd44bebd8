// Tells an error of an item in terms of the client's request.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "server/core/request.h"

namespace saccade::server {

// Prefixes an error with the name of the input and, if the request has several items, the item's index:
// "encoded: ", "input 'image': picture 3: ". `kind` is the word for an item.
// CANCELLED and DEADLINE_EXCEEDED are returned as they are.
absl::Status AtItem(const absl::Status& status, const Request& request, const char* kind, int64_t item,
                    const std::string& part = "");

}  // namespace saccade::server
