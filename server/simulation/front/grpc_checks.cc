#include "server/simulation/front/grpc_checks.h"

#include <cstdint>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/http/exchange.h"

namespace saccade::server::simulation {

void CheckGrpc(const ScriptedPeer& peer, const ClientFacts& facts, FrontResult& result,
               const OnViolation& violate) {
  if (!peer.is_polite()) return;
  const std::string& name = facts.name;
  const bool drained = facts.drain != absl::InfiniteFuture();
  // Calls that were refused with RESOURCE_EXHAUSTED: of one small message, of several, and of large ones.
  int refused_one = 0, refused_small = 0, refused = 0;
  int failed = 0;
  for (const auto& [stream, call] : peer.calls()) {
    const std::string what = absl::StrCat("stream ", stream, " of ", name);
    if (!call.ended) {
      if (facts.now - call.begun > facts.patience) violate(absl::StrCat(what, " was not answered"));
      continue;
    }
    // Its message is all that it can be charged for.
    const bool is_one = call.is_small && !call.streaming;
    if (is_one) ++result.small_calls;
    if (call.unprocessed) {
      ++result.calls_refused;
      if (!drained && call.others_open < facts.max_streams)
        violate(absl::StrCat(what, " was not processed, beside ", call.others_open, " others and no drain"));
    } else if (call.status == 0) {
      ++result.calls_answered;
      if (call.received != call.sent) violate(absl::StrCat(what, " was answered with something else"));
    } else if (call.status == 8) {  // RESOURCE_EXHAUSTED
      ++result.calls_refused;
      ++refused;
      if (call.is_small) ++refused_small;
      if (is_one) ++refused_one;
    } else if (call.status == 14 && drained) {  // UNAVAILABLE
      ++result.calls_refused;
    } else if (call.status == 13 && !call.streaming) {  // as drawn
      ++result.calls_answered;
      ++failed;
    } else {
      violate(absl::StrCat(what, " ended with ", call.status));
    }
  }
  result.small_calls_refused += refused_one;
  // A charge that the ledger refuses ends one call, and CheckedLedger has checked that it did not fit.
  const auto check = [&](int calls, const char* kind, int64_t max_bytes) {
    const int charges = facts.ledger->refusals(name, max_bytes);
    if (calls <= charges) return;
    violate(absl::StrCat(name, " was refused ", calls, " ", kind, ", and the ledger refused it ", charges,
                         " charges of at most ", max_bytes, " bytes"));
  };
  check(refused_one, "calls of a small message", kMaxSmallMessage);
  // Messages that come before the service asks for them are charged like this.
  check(refused_small, "calls of small messages", Exchange::kFirstBodyBytes);
  check(refused, "calls", std::numeric_limits<int64_t>::max());
  if (failed > facts.failed_as_drawn)
    violate(absl::StrCat(failed, " calls of ", name, " failed, ", facts.failed_as_drawn, " as drawn"));
}

}  // namespace saccade::server::simulation
