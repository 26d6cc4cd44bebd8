// Resolves --class, which takes indices or names.
#pragma once

#include <cstdint>
#include <vector>

#include "client/cli/commands/options.h"
#include "client/cli/output/console.h"

namespace saccade::client {

// Looks names up in the model's labels; asks the daemon for them only if a name was given. Returns kExitOk,
// or the exit code after printing an error.
int FindClasses(const FindCommand& command, Console& console, std::vector<int64_t>& indices);

}  // namespace saccade::client
