// saccade classify: pictures to a daemon, answers in the order of the pictures.
#pragma once

#include "client/cli/console.h"
#include "client/cli/options.h"

namespace saccade::client {

// Returns the exit code: of the first picture that failed, in the order given.
int RunClassify(const ClassifyCommand& command, Console& console);

}  // namespace saccade::client
