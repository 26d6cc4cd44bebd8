// The one loop that makes load: starts calls in a closed or an open loop, and records how each of them ended.
// What a call sends is pluggable: infer_calls.h, unary_calls.h and blocking_calls.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/cpp/types.h"

namespace saccade::client {

struct LoadPlan {
  // Open loop: calls per second, due at random times that do not depend on the responses (arrivals.h). 0 is a
  // closed loop: each connection makes its next call when its previous one has ended.
  double rate = 0;
  // No call is due later than this, and none is sent later: an open loop leaves out the calls that still wait
  // then. Only a call that was due before, and for which the sender was woken too late, is sent nevertheless.
  // An open loop makes at least its first call, a closed loop at least one per connection.
  absl::Duration duration = absl::Seconds(10);
  // Closed loop: the number of calls in flight. Open loop: calls use the connections in turn.
  int connections = 16;
  // Open loop: a call that is due while as many calls are in flight is sent late, when one of them has ended,
  // or not at all.
  int max_in_flight = std::numeric_limits<int>::max();
  // Seed of the random times.
  uint64_t seed = 1;
  // Closed loop: a failed call is the last one of its connection.
  bool stop_after_failure = false;
};

// One call to start.
struct LoadCall {
  // Number of the call, from 0.
  size_t number = 0;
  // From 0 to LoadPlan::connections - 1. In a closed loop, no two calls of a connection are in flight at
  // once.
  int connection = 0;
  absl::Time due;
};

struct CallResult {
  absl::Status status;
  // The daemon's own measurements; zero if it sent none.
  Timings timings = {};
  int batch_size = 0;
};

using CallDone = std::function<void(CallResult)>;

// Starts a call; `done` must be called exactly once when it has ended, on any thread, and may start another
// call before it returns. A StartCall must not block, or later calls are sent late, and is called
// concurrently. Each call needs a deadline of its own: a load ends when all calls that it started have ended.
using StartCall = std::function<void(const LoadCall& call, CallDone done)>;

// How a call ended. Times are since the start of the load.
struct LoadSample {
  int connection = 0;
  absl::Duration due;
  absl::Duration sent;
  absl::Duration ended;
  // Open loop: whether it waited because max_in_flight calls were in flight. A call that did not wait and was
  // sent late is due to this program, which was not woken in time.
  bool waited = false;
  absl::Status status;
  Timings timings = {};
  int batch_size = 0;

  // Counts from when the call was due, so that a server that is too slow cannot hide it by delaying calls.
  absl::Duration latency() const { return ended - due; }
  // The part of the latency that passed before the call was sent.
  absl::Duration held() const { return sent - due; }
};

struct LoadResult {
  // One per call, sorted by due time. A deque, because a growing vector would stop the load to move its
  // elements.
  std::deque<LoadSample> samples;
  // Open loop: number of calls that were due, but not sent before the end of the plan's duration. The samples
  // leave them out.
  size_t not_sent = 0;
  // From the start to the last response.
  absl::Duration elapsed;

  // Returns the status of the first call that failed; OK if none did.
  absl::Status FirstFailure() const;
};

// Receives the elapsed fraction of the duration and the number of calls that have ended.
using LoadProgress = std::function<void(double done, size_t ended)>;

// The time that a load is sent by; tests replace it.
struct LoadClock {
  std::function<absl::Time()> now = &absl::Now;
  // Blocks until `now` has reached the time.
  std::function<void(absl::Time)> sleep_until = [](absl::Time due) { absl::SleepFor(due - absl::Now()); };
};

// Blocks until the last call has ended. Calls `progress`, which may be null, on the calling thread several
// times per second.
LoadResult RunLoad(const LoadPlan& plan, const StartCall& start, const LoadProgress& progress = nullptr,
                   const LoadClock& clock = {});

// Makes one call on every connection, which opens it. Blocks until all have ended; returns the first failure.
absl::Status WarmUp(int connections, const StartCall& start);

}  // namespace saccade::client
