// Implements saccaded --check-config.
#pragma once

#include <ostream>

#include "absl/status/status.h"
#include "server/lifecycle/flags.h"

namespace saccade::server {

// Reads all models of the repositories and their weights without serving them. Writes a line to `out` for
// each version and each warning. Blocks. FAILED_PRECONDITION if a model has an error.
absl::Status CheckConfig(const Flags& flags, std::ostream& out);

}  // namespace saccade::server
