// Runs the program inside a test of a command.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "client/cli/commands/app.h"

namespace saccade::client {

struct RunResult {
  int exit_code = 0;
  std::string out;
  std::string err;
};

inline RunResult RunWith(std::vector<std::string> arguments, const std::string& input = "",
                         bool color = false, bool unicode = false) {
  std::istringstream in(input);
  std::ostringstream out, err;
  Console console{in, out, err, color, unicode};
  const int exit_code = RunApp(std::move(arguments), console);
  return {exit_code, out.str(), err.str()};
}

}  // namespace saccade::client
