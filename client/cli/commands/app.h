// The command line of `saccade`.
#pragma once

#include <string>
#include <vector>

#include "client/cli/output/console.h"

namespace saccade::client {

// Parses `arguments` (without the program's name), runs the command, and returns the exit code. Reads
// SACCADE_* environment variables as defaults of the connection's options.
int RunApp(std::vector<std::string> arguments, Console& console);

}  // namespace saccade::client
