// saccade detect: what is where on pictures.
#pragma once

#include "client/cli/console.h"
#include "client/cli/options.h"

namespace saccade::client {

// As RunPictures; kExitUsage also for a class that the model does not have.
int RunDetect(const DetectCommand& command, Console& console);

}  // namespace saccade::client
