// Counts a call that was rejected before it was computed.
#pragma once

#include "absl/status/status.h"
#include "server/core/shed_reason.h"
#include "server/metrics/metrics.h"

namespace saccade::server {

// Counts the call as shed if `status` is a rejection, and adds the reason to it. A step of an ensemble
// (`nested`) that is cancelled is not counted: it was cancelled with its ensemble, which is counted once, or
// because another step failed.
inline void CountShed(Metrics& metrics, bool nested, absl::Status& status) {
  const auto reason = ShedReasonOf(status);
  if (status.ok() || !reason) return;
  if (!nested || *reason != ShedReason::kCancelled) metrics.RecordShed(*reason);
  SetShedReason(status, *reason);
}

}  // namespace saccade::server
