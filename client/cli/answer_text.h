// An answer as lines to look at.
#pragma once

#include "client/cli/console.h"
#include "client/cli/outcome.h"

namespace saccade::client {

// A heading, then the task's own lines. Only for an answer that is there.
void PrintText(Console& console, const Outcome& outcome);

}  // namespace saccade::client
