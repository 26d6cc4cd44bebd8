// Prints a result as text.
#pragma once

#include "client/cli/output/console.h"
#include "client/cli/output/outcome.h"

namespace saccade::client {

// Prints a heading, then the lines of the task. REQUIRES: outcome.answer.ok().
void PrintText(Console& console, const Outcome& outcome);

}  // namespace saccade::client
