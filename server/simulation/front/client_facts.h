// What the simulated world knows of one client when the run has ended, for the checks of what it has seen.
#pragma once

#include <functional>
#include <string>

#include "absl/time/time.h"
#include "server/simulation/front/checked_ledger.h"

namespace saccade::server::simulation {

struct ClientFacts {
  // As the ledger names it.
  std::string name;
  const CheckedLedger* ledger = nullptr;
  // How many of its requests the services have failed.
  int failed_as_drawn = 0;
  // The end of the run.
  absl::Time now;
  // InfiniteFuture() if there was none.
  absl::Time drain = absl::InfiniteFuture();
  // A polite client's request takes at most this long, and so does the end of a connection that stalls.
  absl::Duration patience;
  // As in HttpLimits.
  absl::Duration idle_timeout;
  int max_streams = 0;
};

// Called with a description of each thing that must not be.
using OnViolation = std::function<void(std::string)>;

}  // namespace saccade::server::simulation
