// Attaches to a status the reason why a request was rejected before it cost compute.
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace saccade::server {

enum class ShedReason {
  kRequests,
  kBytes,
  kDecodedBytes,
  kQueueFull,
  kDeadline,
  kCancelled,
  kDraining,
  kModelBound,
  kClientRate,
  kPredictedLate,
  kClientRequests,
  kClientBytes,
  kClientDecodedBytes,
};
inline constexpr int kShedReasons = static_cast<int>(ShedReason::kClientDecodedBytes) + 1;

// The name used in metrics and error details, e.g. "queue_full".
absl::string_view ShedReasonName(ShedReason reason);

void SetShedReason(absl::Status& status, ShedReason reason);

// Returns the reason set by SetShedReason, or nullopt.
std::optional<ShedReason> StatedShedReason(const absl::Status& status);

// Returns the reason that was set, else one derived from the status code; nullopt if the code is not a
// rejection.
std::optional<ShedReason> ShedReasonOf(const absl::Status& status);

}  // namespace saccade::server
