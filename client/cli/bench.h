// saccade bench: how fast a model answers, as its users would see it.
#pragma once

#include "client/cli/console.h"
#include "client/cli/options.h"

namespace saccade::client {

// Returns the exit code: 0 if there was an answer, else the first request's.
int RunBench(const BenchCommand& command, Console& console);

}  // namespace saccade::client
