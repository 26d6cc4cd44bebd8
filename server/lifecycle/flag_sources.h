// Where the flags' values come from: the command line, the environment and the file of --config.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace saccade::server {

// Splits "--flag=" into "--flag" and "". CLI11 would otherwise take the next word as the value. The words are
// in CLI11's order, the last one first, and do not contain the program's name.
std::vector<std::string> SplitWords(int argc, char** argv);

// Gives each flag of `app` its environment variable, SACCADED_GRPC_PORT for --grpc-port, and lets the
// environment take precedence over the file of --config, whose values are read as those of the command line.
// Call after all flags were added; `app` must not be moved afterwards.
void SetFlagSources(CLI::App& app);

}  // namespace saccade::server
