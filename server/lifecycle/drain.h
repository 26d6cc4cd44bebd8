// Ends serving without losing an accepted request: a state machine, and the function that drives it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/core/clock.h"

namespace saccade::server {

enum class DrainState {
  kServing,
  // The health is NOT_SERVING, and loads of models are refused.
  kNotReady,
  // Requests are still accepted, so that load balancers see NOT_SERVING first.
  kLameDuck,
  // Clients were told to send new requests elsewhere (HTTP/2's GOAWAY). Requests that they sent before they
  // heard of it are still accepted.
  kRefusing,
  // Requests are refused; those that were accepted are computed, and their responses are sent.
  kFinishing,
  // No accepted request is left. The ports are closed and the models are stopped.
  kClosing,
  kDone,
  // Something took longer than --drain-timeout-seconds.
  kTimedOut,
};

// "serving", "not_ready", ...
absl::string_view NameOf(DrainState state);

struct DrainOptions {
  // How long requests are still accepted.
  absl::Duration lame_duck = absl::ZeroDuration();
  // How long accepted requests may then take to finish, including the sending of their responses.
  absl::Duration timeout = absl::ZeroDuration();
  // How long requests are accepted that clients sent before they heard of GOAWAY: some round trips.
  absl::Duration go_away = absl::Milliseconds(750);
  // Connections take no new requests so much earlier, because a request that a connection has taken must not
  // be refused by admission.
  absl::Duration go_away_margin = absl::Milliseconds(250);
  // How long clients may continue to send requests that are not complete when requests are refused, at most
  // half of `timeout`. Those that complete are answered with UNAVAILABLE; the others are ended.
  absl::Duration upload_grace = absl::Seconds(1);
  // Minimum time for kClosing.
  absl::Duration closing = absl::Seconds(5);
};

// The facts that a drain depends on, at one point in time.
struct DrainFacts {
  absl::Time now = absl::InfinitePast();
  // SIGTERM or SIGINT came; `hurry`: a second time, which ends kLameDuck.
  bool ends = false;
  bool hurry = false;
  // Requests that admission has accepted and that are not answered.
  int64_t accepted = 0;
  // Requests of the gRPC and HTTP ports that are not completely received and answered; includes `accepted`.
  size_t open_requests = 0;
  // Accepted requests that were ended since the drain began, because their clients did not read the answers
  // in time. Requests that the clients themselves have cancelled are not counted.
  int64_t cut_requests = 0;
  // The ports are closed and the models are stopped.
  bool closed = false;
};

struct DrainPosition {
  DrainState state = DrainState::kServing;
  // When the state was entered.
  absl::Time since = absl::InfinitePast();
  // When the drain times out. Set from kFinishing on.
  absl::Time deadline = absl::InfiniteFuture();
};

// The state that follows, or the same position if the facts do not end its state. Makes one transition at
// most.
DrainPosition NextPosition(const DrainOptions& options, const DrainPosition& position,
                           const DrainFacts& facts);

// What a drain does and asks. Called on the draining thread, except for `close`. Only `close` may block.
struct DrainHooks {
  // On entering kNotReady, in this order.
  std::function<void()> report_not_ready;
  std::function<void()> refuse_loads;
  // On entering kRefusing.
  std::function<void()> go_away;
  // On entering kFinishing.
  std::function<void()> refuse_requests;
  // Until kClosing, often: ends calls that are late or cancelled. May be null.
  std::function<void()> sweep = nullptr;
  // In kFinishing, repeatedly: ends requests whose clients have not sent them completely, streams included.
  // Called when no accepted request is left.
  std::function<void()> end_unfinished;
  // On entering kClosing, on a thread of its own if the system has one left. If it blocks for too long, the
  // thread is left behind.
  std::function<void()> close;
  // Sets `accepted`, `open_requests` and `cut_requests`. Not called any more when `close` may have begun.
  std::function<void(DrainFacts&)> count;
};

// Drains from kServing to the end. `await_signal` blocks for the given time or until another signal arrives.
// Blocks. Returns OK if every accepted request was answered, and everything is closed; DATA_LOSS if
// everything is closed, but requests were cut (DrainFacts::cut_requests); DEADLINE_EXCEEDED otherwise, in
// which case forward passes or `close` may still be running.
absl::Status Drain(const DrainOptions& options, const DrainHooks& hooks, Clock& clock,
                   absl::FunctionRef<bool(absl::Duration)> await_signal);

// Runs `close` on a thread of its own, and returns whether it ended within `max`. If not, the thread is left
// behind. `await_signal` is as for Drain(); signals do not end the wait.
bool CloseWithin(absl::Duration max, const std::function<void()>& close, Clock& clock,
                 absl::FunctionRef<bool(absl::Duration)> await_signal);

}  // namespace saccade::server
