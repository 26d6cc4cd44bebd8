// What the scheduler's decisions cost on one thread.
#pragma once

#include "server/batching/bench/world.h"

namespace saccade::server::bench {

// Returns the CPU time of one Push, with the Next and Finished that belong to it. Every busy model always has
// queued requests, so that there is always a choice. Runs for about `seconds`.
absl::Duration TimeOfDecision(const World& world, double seconds);

}  // namespace saccade::server::bench
