// What items of a PredictStream have in addition to their requests and answers.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "saccade/v1/vision.pb.h"
#include "server/protocols/retry_jitter.h"

namespace saccade::server {

// absl::InfiniteDuration() if there is none. INVALID_ARGUMENT if it is not positive or not a valid duration.
absl::StatusOr<absl::Duration> TimeoutOf(const v1::PredictStreamRequest& message);

// Sets the equivalent of ToGrpcStatus() for one item. REQUIRES: `status` is an error.
void SetItemError(const absl::Status& status, RetryJitter* jitter, v1::ItemError* message);

}  // namespace saccade::server
