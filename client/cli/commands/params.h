// saccade params: counts a network's parameters and operations, without weights and without a daemon.
#pragma once

#include "client/cli/commands/options.h"
#include "client/cli/output/console.h"

namespace saccade::client {

// kExitUsage, after listing the known ones, for an unknown architecture or option.
int RunParams(const ParamsCommand& command, Console& console);

}  // namespace saccade::client
