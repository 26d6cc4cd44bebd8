// Many clients, some of them hostile, against the front on virtual time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace saccade::server::simulation {

struct FrontResult {
  // What must not happen and did; empty for a sound front.
  std::vector<std::string> violations;
  int calls_begun = 0;
  int calls_answered = 0;
  int calls_refused = 0;
  bool drained = false;
};

// Draws clients, services and a drain from the seed and runs them for some virtual minutes. Checks that
//   as many calls end in the services as began there;
//   a polite client's call is answered with what it sent, or refused with a reason, or declared unprocessed,
//   in bounded time, whatever the others do;
//   the ledger never holds more than its bound, and returns to zero.
FrontResult RunFrontSeed(uint64_t seed);

}  // namespace saccade::server::simulation
