// saccade restore: restores volumes.
#pragma once

#include "client/cli/commands/options.h"
#include "client/cli/output/console.h"

namespace saccade::client {

// Restores one volume after the other, in the order given. Returns the exit code of the first that failed.
int RunRestore(const RestoreCommand& command, Console& console);

}  // namespace saccade::client
