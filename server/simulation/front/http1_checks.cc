#include "server/simulation/front/http1_checks.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/http/http_headers.h"
#include "server/http/testing/frames.h"

namespace saccade::server::simulation {
namespace {

// What the ledger is charged at most for a small request: its head, and a body of kMaxSmallBody bytes.
constexpr int64_t kMaxSmallCharge = int64_t{8} << 10;

enum class Http1Outcome { kAnswered, kRefused, kFailed, kWrong };

// The status that ends a call of gRPC-web, which is in its last message; the ones before that go to
// `messages`. Nullopt if the body has no such end.
std::optional<std::string> SplitWebAnswer(std::string_view body, std::string* messages) {
  constexpr size_t kPrefix = 5;
  while (body.size() >= kPrefix) {
    const size_t size = kPrefix + NumberAt(body, 1, 4);
    if (body.size() < size) return std::nullopt;
    const bool is_end = body[0] == '\x80';
    if (is_end && body.size() == size) return std::string(body.substr(kPrefix));
    if (is_end || body[0] != 0) return std::nullopt;
    *messages += body.substr(0, size);
    body.remove_prefix(size);
  }
  return std::nullopt;
}

Http1Outcome OutcomeOfWeb(const Http1Request& request, const Http1Answer& answer) {
  std::string messages;
  const auto trailers = SplitWebAnswer(answer.body, &messages);
  if (answer.status != 200 || !trailers) return Http1Outcome::kWrong;
  const auto ended_with = [&](const char* status) {
    return absl::StrContains(*trailers, absl::StrCat("grpc-status: ", status, "\r\n"));
  };
  if (ended_with("0")) return messages == request.expected ? Http1Outcome::kAnswered : Http1Outcome::kWrong;
  if (!absl::StrContains(*trailers, "grpc-message: ")) return Http1Outcome::kWrong;
  if (ended_with("8")) return Http1Outcome::kRefused;  // RESOURCE_EXHAUSTED
  // Streams do not fail as drawn.
  return ended_with("13") && request.kind == Http1Kind::kWebUnary ? Http1Outcome::kFailed
                                                                  : Http1Outcome::kWrong;
}

Http1Outcome OutcomeOfHttp(const Http1Request& request, const Http1Answer& answer) {
  const bool is_head = request.kind == Http1Kind::kHead;
  if (answer.status == 200) {
    const auto length = FindHeader(answer.headers, "content-length");
    const bool fits = length && *length == absl::StrCat(request.expected.size());
    return fits && (is_head || answer.body == request.expected) ? Http1Outcome::kAnswered
                                                                : Http1Outcome::kWrong;
  }
  // The reason.
  if (!is_head && !absl::StartsWith(answer.body, "{\"error\":\"")) return Http1Outcome::kWrong;
  if (answer.status == 429) return Http1Outcome::kRefused;
  return answer.status == 500 ? Http1Outcome::kFailed : Http1Outcome::kWrong;
}

std::string Describe(const std::optional<Http1Answer>& answer) {
  if (!answer) return "no answer";
  return absl::StrCat("status ", answer->status, " and ", answer->body.size(), " bytes");
}

// Checks one polite client.
class PoliteChecks {
 public:
  PoliteChecks(const Http1Peer& peer, const ClientFacts& facts, Http1Counts* counts,
               const OnViolation& violate)
      : peer_(peer), facts_(facts), counts_(*counts), violate_(violate) {}

  void Run() {
    for (size_t i = 0; i < peer_.calls().size(); ++i)
      CheckCall(peer_.calls()[i], absl::StrCat("request ", i, " of ", facts_.name));
    CheckIdleEnds();
    CheckRefusals(small_refused_, "small requests", kMaxSmallCharge);
    CheckRefusals(refused_, "requests", std::numeric_limits<int64_t>::max());
    if (failed_ > facts_.failed_as_drawn) {
      violate_(absl::StrCat(failed_, " requests of ", facts_.name, " failed, ", facts_.failed_as_drawn,
                            " as drawn"));
    }
  }

 private:
  void CheckCall(const Http1Call& call, const std::string& what) {
    if (!call.ended) {
      if (facts_.now - call.begun > facts_.patience) violate_(absl::StrCat(what, " was not answered"));
      return;
    }
    ++counts_.requests;
    if (call.unprocessed) {
      ++counts_.unprocessed;
      return;
    }
    if (!call.answer) return violate_(absl::StrCat(what, " ended without an answer"));
    const Http1Outcome outcome = IsGrpcWeb(call.request.kind) ? OutcomeOfWeb(call.request, *call.answer)
                                                              : OutcomeOfHttp(call.request, *call.answer);
    if (outcome == Http1Outcome::kWrong)
      return violate_(absl::StrCat(what, " was answered with something else: ", Describe(call.answer)));
    CheckClose(call, outcome, what);
    Count(call, outcome);
  }

  // Whether the answer says rightly that the connection ends, or does not.
  void CheckClose(const Http1Call& call, Http1Outcome outcome, const std::string& what) {
    const bool closes = call.answer->closes;
    if (call.after_drain && !closes)
      violate_(absl::StrCat(what, " was answered during the drain without Connection: close"));
    // A refusal may come before the body, and a stream's first answer before the last message.
    const bool is_complete = outcome != Http1Outcome::kRefused && call.request.kind != Http1Kind::kWebStream;
    if (closes && is_complete && !call.after_drain && !call.request.closes)
      violate_(absl::StrCat(what, " closed the connection without a drain"));
    if (call.request.closes && !closes)
      violate_(absl::StrCat(what, " asked for the connection's end, which the answer does not announce"));
  }

  void Count(const Http1Call& call, Http1Outcome outcome) {
    const Http1Request& request = call.request;
    if (call.after_drain) ++counts_.after_drain;
    if (request.is_small) ++counts_.small;
    if (outcome == Http1Outcome::kRefused) {
      ++counts_.refused;
      ++refused_;
      if (request.is_small) ++small_refused_;
      if (request.is_small) ++counts_.small_refused;
    } else if (outcome == Http1Outcome::kFailed) {
      ++counts_.failed;
      ++failed_;
    } else {
      ++counts_.answered;
      if (call.ahead > 0) ++counts_.pipelined;
      if (request.is_chunked) ++counts_.chunked;
      if (call.continued) ++counts_.continued;
      if (request.kind == Http1Kind::kHead) ++counts_.heads;
      if (request.kind == Http1Kind::kWebStream && call.answer->is_chunked) ++counts_.streams;
    }
  }

  void CheckIdleEnds() {
    counts_.idle_ends += static_cast<int>(peer_.idle_ends().size());
    for (const Http1Peer::IdleEnd& end : peer_.idle_ends()) {
      // The server has counted from a moment before the client had the last answer.
      constexpr absl::Duration kSlack = absl::Seconds(1);
      if (end.at >= facts_.drain || end.idle + kSlack >= facts_.idle_timeout) continue;
      violate_(absl::StrCat("a connection of ", facts_.name, " was ended ", absl::FormatDuration(end.idle),
                            " after its last request, without a drain"));
    }
  }

  // A charge that the ledger refuses ends one request, and CheckedLedger has checked that it did not fit.
  void CheckRefusals(int requests, const char* kind, int64_t max_bytes) {
    const int charges = facts_.ledger->refusals(facts_.name, max_bytes);
    if (requests <= charges) return;
    violate_(absl::StrCat(facts_.name, " was refused ", requests, " ", kind, ", and the ledger refused it ",
                          charges, " charges for those"));
  }

  const Http1Peer& peer_;
  const ClientFacts& facts_;
  Http1Counts& counts_;
  const OnViolation& violate_;
  int refused_ = 0;
  int small_refused_ = 0;
  int failed_ = 0;
};

// A connection on which a client stalls is ended in bounded time. Streams of gRPC-web may wait between two
// messages for as long as they like.
void CheckStall(const Http1Peer& peer, const ClientFacts& facts, const OnViolation& violate) {
  const bool stalls =
      peer.behaviour() == Http1Behaviour::kStallsInHead || peer.behaviour() == Http1Behaviour::kStallsInBody;
  if (!stalls || facts.now - peer.stalled_at() <= facts.patience || peer.calls().back().ended) return;
  if (peer.behaviour() == Http1Behaviour::kStallsInBody &&
      peer.calls().back().request.kind == Http1Kind::kWebStream) {
    return;
  }
  violate(absl::StrCat("the connection of ", facts.name, ", which stalls, was not ended"));
}

}  // namespace

void Http1Counts::Add(const Http1Counts& more) {
  for (size_t i = 0; i < clients.size(); ++i) clients[i] += more.clients[i];
  for (int Http1Counts::* const count :
       {&Http1Counts::requests, &Http1Counts::answered, &Http1Counts::refused, &Http1Counts::failed,
        &Http1Counts::unprocessed, &Http1Counts::pipelined, &Http1Counts::chunked, &Http1Counts::continued,
        &Http1Counts::heads, &Http1Counts::streams, &Http1Counts::after_drain, &Http1Counts::small,
        &Http1Counts::small_refused, &Http1Counts::idle_ends, &Http1Counts::reconnects,
        &Http1Counts::timed_out, &Http1Counts::malformed}) {
    this->*count += more.*count;
  }
}

void CheckHttp1(const Http1Peer& peer, const ClientFacts& facts, Http1Counts* counts,
                const OnViolation& violate) {
  ++counts->clients[static_cast<size_t>(peer.behaviour())];
  for (const std::string& problem : peer.problems()) violate(absl::StrCat(facts.name, ": ", problem));
  if (peer.is_polite()) {
    counts->reconnects += peer.connections() - 1;
    return PoliteChecks(peer, facts, counts, violate).Run();
  }
  CheckStall(peer, facts, violate);
  for (const Http1Call& call : peer.calls()) {
    if (!call.answer) continue;
    if (call.answer->status == 408) ++counts->timed_out;
    if (call.answer->status == 400 && peer.behaviour() == Http1Behaviour::kGarbage) ++counts->malformed;
  }
}

}  // namespace saccade::server::simulation
