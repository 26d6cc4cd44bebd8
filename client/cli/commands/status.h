// saccade status: prints whether a daemon is live and ready, and its models' statistics.
#pragma once

#include "client/cli/commands/options.h"
#include "client/cli/output/console.h"

namespace saccade::client {

// Returns kExitOk only if the daemon is ready. With --watch, blocks until the output is closed.
int RunStatus(const StatusCommand& command, Console& console);

}  // namespace saccade::client
