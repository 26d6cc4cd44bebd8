// saccade actions: finds actions in clips.
#pragma once

#include "client/cli/commands/options.h"
#include "client/cli/output/console.h"

namespace saccade::client {

// Like RunPictures, but for videos, or for pictures that form clips. kExitUsage also for a class that the
// model does not have.
int RunActions(const ActionsCommand& command, Console& console);

}  // namespace saccade::client
