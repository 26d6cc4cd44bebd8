// What the daemon says of flags that it cannot use.
#pragma once

#include <string>

namespace CLI {
class App;
class Error;
}  // namespace CLI

namespace saccade::server {

// Says what was wrong, what was meant if a flag is mistyped, and where the flags are listed. `app` has parsed
// the flags as far as it could.
std::string FlagErrorText(const CLI::App& app, const CLI::Error& error);

}  // namespace saccade::server
