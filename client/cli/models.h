// saccade models and saccade status: what a daemon serves, and whether it does.
#pragma once

#include "client/cli/console.h"
#include "client/cli/options.h"

namespace saccade::client {

int RunModels(const ModelsCommand& command, Console& console);

// kExitOk only if the daemon is ready.
int RunStatus(const StatusCommand& command, Console& console);

}  // namespace saccade::client
