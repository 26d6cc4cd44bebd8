// Many clients of gRPC and of HTTP/1.1, some of them hostile, against the front on virtual time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/simulation/front/http1_checks.h"

namespace saccade::server::simulation {

// What a test breaks, to show that the checks notice it.
enum class FrontFault {
  kNone,
  kKeepsUnaryCalls,  // the service never answers a unary call
  kStarvesPolite,    // the front refuses every call of a polite client
  kRefusesTooEarly,  // the ledger refuses at a quarter of its bound
  // Only clients of HTTP/1.1 can notice these.
  kKeepsHttpBodies,      // the HTTP service frees no request's body
  kMixesHttpAnswers,     // the HTTP service answers an echo with the body of the one before
  kForgetsHttp1InDrain,  // connections of HTTP/1.1 are not told of the drain
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
  Http1Counts http1;
  bool drained = false;
};

// Draws clients, services and a drain from the seed and runs them for some virtual minutes. Clients of gRPC
// over HTTP/2, of HTTP/1.1 and of gRPC-web over HTTP/1.1 share the services, the ledger and the drain. Checks
// that
//   as many requests end in the front as began there, and as many calls in the services, unary and streaming
//   ones; and no request receives anything out of order;
//   a polite client's request is answered with what it sent, or refused with a reason, or declared
//   unprocessed, in bounded time, whatever the others do;
//   it is refused only if the ledger refused that client a charge for it. A call is declared unprocessed only
//   during a drain or if the client had too many streams open, a request of HTTP/1.1 only behind an answer
//   that has closed the connection;
//   during a drain, every answer of HTTP/1.1 says that it is the connection's last; otherwise only answers
//   to requests that asked for it, refusals, and answers that began before the request was complete;
//   whatever HTTP/1.1 clients do, what they receive is well-formed, and a connection that stalls is ended;
//   the ledger refuses a charge exactly if it exceeds its bound or the client's share;
//   the ledger never holds more than its bound, and returns to zero.
FrontResult RunFrontSeed(uint64_t seed, FrontFault fault = FrontFault::kNone);

}  // namespace saccade::server::simulation
