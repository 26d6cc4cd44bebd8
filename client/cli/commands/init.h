// saccade init: makes a model's folder from a weights file. Needs no daemon.
#pragma once

#include "client/cli/commands/options.h"
#include "client/cli/output/console.h"

namespace saccade::client {

// Says what the file is and writes config.pbtxt, labels.txt and the version's folder. kExitUsage if the
// folder has a model already, kExitFailure if the file cannot be read or is not recognised; nothing is
// written then.
int RunInit(const InitCommand& command, Console& console);

}  // namespace saccade::client
