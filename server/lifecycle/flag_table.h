// The daemon's flags as text that a program can read.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace saccade::server {

// Returns one line for each flag that --help shows, in the same order. Its fields are separated by tabs:
// names (separated by commas), type of the value, default, flags that it needs, flags that it excludes,
// description, and, for a number, the error for -1, which says what is accepted, or "-1 is accepted". ./dev
// docs makes docs/reference/flags.md of it: unlike --help, it does not depend on the version of the library.
// Sets flags of `app`, which must not be used afterwards.
std::string FlagTable(CLI::App& app);

}  // namespace saccade::server
