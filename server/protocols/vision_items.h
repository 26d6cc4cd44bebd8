// What the items of a PredictStream have beside their requests and answers.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "saccade/v1/vision.pb.h"
#include "server/protocols/retry_jitter.h"

namespace saccade::server {

// absl::InfiniteDuration() if it has none. INVALID_ARGUMENT if it is not above zero, or no duration.
absl::StatusOr<absl::Duration> TimeoutOf(const v1::PredictStreamRequest& message);

// What ToGrpcStatus would make a call's end of. REQUIRES: `status` is an error.
void SetItemError(const absl::Status& status, RetryJitter* jitter, v1::ItemError* message);

}  // namespace saccade::server
