#include "server/metrics/failure_reason.h"

namespace saccade::server {

FailureReason FailureReasonOf(absl::StatusCode code, bool computed) {
  switch (code) {
    case absl::StatusCode::kCancelled:
      return FailureReason::kCanceled;
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return computed ? FailureReason::kOther : FailureReason::kRejected;
    case absl::StatusCode::kInternal:
      return computed ? FailureReason::kBackend : FailureReason::kOther;
    default:
      return FailureReason::kOther;
  }
}

}  // namespace saccade::server
