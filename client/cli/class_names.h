// --class: by index, or by a name of the model's.
#pragma once

#include <cstdint>
#include <vector>

#include "client/cli/console.h"
#include "client/cli/options.h"

namespace saccade::client {

// Names are looked up among the model's labels; the daemon is asked only if there is one. kExitOk, or the
// exit code after complaining.
int FindClasses(const FindCommand& command, Console& console, std::vector<int64_t>& indices);

}  // namespace saccade::client
