// saccade params: what a network costs, without weights and without a daemon.
#pragma once

#include "client/cli/console.h"
#include "client/cli/options.h"

namespace saccade::client {

// kExitUsage for an unknown architecture or option; what is known is listed then.
int RunParams(const ParamsCommand& command, Console& console);

}  // namespace saccade::client
