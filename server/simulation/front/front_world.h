// Many clients, some of them hostile, against the front on virtual time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace saccade::server::simulation {

// What a test breaks, to show that the checks notice it.
enum class FrontFault {
  kNone,
  kKeepsUnaryCalls,  // the service never answers a unary call
  kStarvesPolite,    // the front refuses every call of a polite client
  kRefusesTooEarly,  // the ledger refuses at a quarter of its bound
};

struct FrontResult {
  // What must not happen and did; empty for a sound front.
  std::vector<std::string> violations;
  int calls_begun = 0;
  int calls_answered = 0;
  int calls_refused = 0;
  // Unary calls of polite clients with a message below 500 bytes, and those of them that the full ledger
  // refused.
  int small_calls = 0;
  int small_calls_refused = 0;
  bool drained = false;
};

// Draws clients, services and a drain from the seed and runs them for some virtual minutes. Checks that
//   as many calls end in the services as began there, unary and streaming ones;
//   a polite client's call is answered with what it sent, or refused with a reason, or declared unprocessed,
//   in bounded time, whatever the others do;
//   it is refused only if the ledger refused that client a charge for it, and declared unprocessed only
//   during a drain or if the client had too many streams open;
//   the ledger refuses a charge exactly if it exceeds its bound or the client's share;
//   the ledger never holds more than its bound, and returns to zero.
FrontResult RunFrontSeed(uint64_t seed, FrontFault fault = FrontFault::kNone);

}  // namespace saccade::server::simulation
