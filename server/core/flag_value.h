// What the programs say of a flag's value that they do not accept.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace saccade::server {

// Says in plain words what CLI11's `text` says of a value: which flag has which value, and what was expected.
// Any other text is returned as it is.
std::string FlagValueText(absl::string_view text);

}  // namespace saccade::server
