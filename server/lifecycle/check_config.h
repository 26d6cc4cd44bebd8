// Implements saccaded --check-config.
#pragma once

#include <ostream>

#include "absl/status/status.h"
#include "server/lifecycle/flags.h"

namespace saccade::server {

// Reads all models of the repositories and their weights without serving them. Writes a line to `out` for
// each version and each warning, one for each model that cannot be read or whose name an earlier repository
// has (its versions are not checked then), and last the number of checks and of errors. A wrong environment
// has a line as well, and nothing else is checked then. Blocks.
// FAILED_PRECONDITION if a check failed.
absl::Status CheckConfig(const Flags& flags, std::ostream& out);

}  // namespace saccade::server
