// saccade bench: measures a model's latency and throughput as its users see them.
#pragma once

#include "client/cli/commands/options.h"
#include "client/cli/output/console.h"

namespace saccade::client {

// Returns the exit code: 0 if any request was answered, else that of the first request.
int RunBench(const BenchCommand& command, Console& console);

}  // namespace saccade::client
