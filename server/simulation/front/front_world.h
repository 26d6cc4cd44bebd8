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
  int calls_cut = 0;
  bool drained = false;
};

// Draws clients, services and a drain from the seed and runs them for some virtual minutes. Checks that
//   every call that reached a service ends exactly once there;
//   a polite client's call is answered with what it sent, or refused with a reason, or declared unprocessed,
//   in bounded time, whatever the others do; no client holds more than its share of the ledger, which returns
//   to zero.
FrontResult RunFrontSeed(uint64_t seed);

}  // namespace saccade::server::simulation
