// What requests cost with the daemon's real threads around the scheduler.
#pragma once

#include "server/batching/bench/world.h"

namespace saccade::server::bench {

struct Traffic {
  double requests_per_second = 0;
  // CPU time of the whole process for each request, the senders' included.
  absl::Duration cpu;
  // Time of a Submit: the median, and that which 99 of 100 do not exceed.
  absl::Duration submit_median;
  absl::Duration submit_p99;
  int64_t rejected = 0;
};

// Sends requests to the busy models in turn, at `rate` a second together, for `seconds`. Passes sleep for
// PassTime divided by `speed`, as those of a GPU do.
Traffic Send(const World& world, double rate, double speed, double seconds);

}  // namespace saccade::server::bench
