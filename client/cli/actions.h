// saccade actions: what happens when in clips.
#pragma once

#include "client/cli/console.h"
#include "client/cli/options.h"

namespace saccade::client {

// As RunPictures, of videos or of pictures that make clips; kExitUsage also for a class that the model does
// not have.
int RunActions(const ActionsCommand& command, Console& console);

}  // namespace saccade::client
