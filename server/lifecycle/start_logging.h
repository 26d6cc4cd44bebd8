#pragma once

#include "server/lifecycle/flags.h"

namespace saccade::server {

// Logs go as the flags say from here on; what of them was passed over is the first. Call once, before threads
// start.
void StartLogging(const Flags& flags);

}  // namespace saccade::server
