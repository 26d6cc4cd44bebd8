// saccade tune: the smallest configuration of a model that answers in time, found by simulation.
#pragma once

#include "client/cli/commands/options.h"
#include "client/cli/output/console.h"

namespace saccade::client {

// Returns the exit code: kExitFailure if no configuration holds, with the reason.
int RunTune(const TuneCommand& command, Console& console);

}  // namespace saccade::client
