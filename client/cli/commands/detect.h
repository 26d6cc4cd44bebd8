// saccade detect: finds objects on pictures.
#pragma once

#include "client/cli/commands/options.h"
#include "client/cli/output/console.h"

namespace saccade::client {

// Like RunPictures; kExitUsage also for a class that the model does not have.
int RunDetect(const DetectCommand& command, Console& console);

}  // namespace saccade::client
