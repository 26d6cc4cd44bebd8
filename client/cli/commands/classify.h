// saccade classify: sends pictures and prints their classes in the order of the pictures.
#pragma once

#include "client/cli/commands/options.h"
#include "client/cli/output/console.h"

namespace saccade::client {

// Returns the exit code of the first picture, in the order given, that failed.
int RunClassify(const ClassifyCommand& command, Console& console);

}  // namespace saccade::client
