// saccaded --check-config.
#pragma once

#include <ostream>

#include "absl/status/status.h"
#include "server/lifecycle/flags.h"

namespace saccade::server {

// Reads every model of the repositories, and its weights, without serving any; a line on `out` for each
// version, and for each warning. Blocks. FAILED_PRECONDITION if a model is not in order.
absl::Status CheckConfig(const Flags& flags, std::ostream& out);

}  // namespace saccade::server
