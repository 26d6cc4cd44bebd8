// saccade models and saccade status: list the models of a daemon and their status.
#pragma once

#include "client/cli/console.h"
#include "client/cli/options.h"

namespace saccade::client {

int RunModels(const ModelsCommand& command, Console& console);

// Returns kExitOk only if the daemon is ready.
int RunStatus(const StatusCommand& command, Console& console);

}  // namespace saccade::client
