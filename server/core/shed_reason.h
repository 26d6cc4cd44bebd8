// Why a request was turned away before it cost compute, carried by the status that refuses it.
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace saccade::server {

enum class ShedReason {
  kRequests,
  kBytes,
  kPixels,
  kQueueFull,
  kDeadline,
  kCancelled,
  kDraining,
  kModelBound,
  kClientRate,
  kPredictedLate,
};
inline constexpr int kShedReasons = static_cast<int>(ShedReason::kPredictedLate) + 1;

// As metrics and error details have it: "queue_full".
absl::string_view ShedReasonName(ShedReason reason);

void SetShedReason(absl::Status& status, ShedReason reason);

// Nothing if none was set.
std::optional<ShedReason> StatedShedReason(const absl::Status& status);

// What was set, else what the code of a refusal says; nothing if it is none.
std::optional<ShedReason> ShedReasonOf(const absl::Status& status);

}  // namespace saccade::server
