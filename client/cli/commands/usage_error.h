// What the command says of a command line that it cannot use.
#pragma once

#include <string>

namespace CLI {
class App;
class Error;
}  // namespace CLI

namespace saccade::client {

// Says what was wrong, what was meant if a word is mistyped, and where the flags are listed. `app` is the
// main program, which has parsed the line as far as it could.
std::string UsageErrorText(const CLI::App& app, const CLI::Error& error);

}  // namespace saccade::client
