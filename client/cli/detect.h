// saccade detect: finds objects on pictures.
#pragma once

#include "client/cli/console.h"
#include "client/cli/options.h"

namespace saccade::client {

// Like RunPictures; kExitUsage also for a class that the model does not have.
int RunDetect(const DetectCommand& command, Console& console);

}  // namespace saccade::client
