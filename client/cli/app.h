// The command line of `saccade`.
#pragma once

#include <string>
#include <vector>

#include "client/cli/console.h"

namespace saccade::client {

// Parses (without the program's name), runs, and returns the exit code. Reads SACCADE_URL.
int RunApp(std::vector<std::string> arguments, Console& console);

}  // namespace saccade::client
