#pragma once

#include "server/lifecycle/flags.h"

namespace saccade::server {

// Configures logging as the flags say, and logs the flags' warnings first. Call once, before threads start.
void StartLogging(const Flags& flags);

}  // namespace saccade::server
