// saccade restore: volumes made clear, or sharp, or flat.
#pragma once

#include "client/cli/console.h"
#include "client/cli/options.h"

namespace saccade::client {

// One volume after the other, in the order given. Returns the exit code: of the first that failed.
int RunRestore(const RestoreCommand& command, Console& console);

}  // namespace saccade::client
