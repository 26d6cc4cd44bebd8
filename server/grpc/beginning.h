// What an error shows of a text that a client has sent.
#pragma once

#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"

namespace saccade::server {

// Its beginning: errors stay in memory until the client reads them, uncharged.
inline std::string BeginningOf(absl::string_view text) { return absl::CHexEscape(text.substr(0, 128)); }

}  // namespace saccade::server
