// saccade models: lists the models of a daemon.
#pragma once

#include "client/cli/commands/options.h"
#include "client/cli/output/console.h"

namespace saccade::client {

// Returns the exit code.
int RunModels(const ModelsCommand& command, Console& console);

}  // namespace saccade::client
