// Ends serving without losing an accepted request.
#pragma once

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/admission/admission.h"
#include "server/core/clock.h"
#include "server/lifecycle/readiness.h"

namespace saccade::server {

struct DrainOptions {
  // How long requests are still accepted, so that load balancers see NOT_SERVING first.
  absl::Duration lame_duck;
  // How long accepted requests may then take to finish.
  absl::Duration timeout;
};

// In this order: reports NOT_SERVING, continues to serve for `lame_duck`, rejects new requests, waits for the
// accepted ones, and lets the listeners reject late requests for a moment, because gRPC answers CANCELLED
// while it shuts down, on which clients do not try another server.
//
// `await_signal` blocks for the given time or until another signal arrives, which skips the rest of that
// wait. Blocks. Called once. DEADLINE_EXCEEDED if requests are unanswered after `timeout`.
absl::Status Drain(const DrainOptions& options, Readiness& readiness, Admission& admission, Clock& clock,
                   absl::FunctionRef<bool(absl::Duration)> await_signal);

}  // namespace saccade::server
