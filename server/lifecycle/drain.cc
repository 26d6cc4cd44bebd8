#include "server/lifecycle/drain.h"

#include "absl/strings/str_cat.h"
#include "server/logging/log.h"

namespace saccade::server {
namespace {

// How long new calls are still answered with UNAVAILABLE after the last accepted request was answered.
constexpr absl::Duration kRejectionGrace = absl::Milliseconds(500);

}  // namespace

absl::Status Drain(const DrainOptions& options, Readiness& readiness, Admission& admission, Clock& clock,
                   absl::FunctionRef<bool(absl::Duration)> await_signal) {
  Log(LogLevel::kInfo, "draining: reporting NOT_SERVING, still accepting requests",
      {{"for", options.lame_duck}});
  readiness.StartDraining();
  await_signal(options.lame_duck);
  admission.StartDraining();
  Log(LogLevel::kInfo, "draining: finishing accepted requests",
      {{"requests", admission.inflight().requests}});
  if (!admission.AwaitIdle(clock.Now() + options.timeout)) {
    return absl::DeadlineExceededError(absl::StrCat(admission.inflight().requests,
                                                    " accepted requests did not finish within "
                                                    "--drain-timeout-seconds"));
  }
  await_signal(kRejectionGrace);
  Log(LogLevel::kInfo, "drained: every accepted request was answered");
  return absl::OkStatus();
}

}  // namespace saccade::server
