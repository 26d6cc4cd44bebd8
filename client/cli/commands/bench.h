// saccade bench: measures a model's latency and throughput as its users see them.
#pragma once

#include "client/cli/commands/options.h"
#include "client/cli/output/console.h"

namespace saccade::client {

// Returns the exit code: 0 if all requests that were sent were answered, else that of the first that failed.
int RunBench(const BenchCommand& command, Console& console);

}  // namespace saccade::client
