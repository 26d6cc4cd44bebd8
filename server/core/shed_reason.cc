#include "server/core/shed_reason.h"

#include <array>
#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace saccade::server {
namespace {

// The reason's number, in decimal.
constexpr absl::string_view kReasonPayload = "saccade/shed-reason";

constexpr std::array<absl::string_view, kShedReasons> kNames = {
    "requests",        "bytes",        "decoded_bytes",       "queue_full",  "deadline",
    "cancelled",       "draining",     "model_bound",         "client_rate", "predicted_late",
    "client_requests", "client_bytes", "client_decoded_bytes"};

}  // namespace

absl::string_view ShedReasonName(ShedReason reason) { return kNames[static_cast<size_t>(reason)]; }

void SetShedReason(absl::Status& status, ShedReason reason) {
  status.SetPayload(kReasonPayload, absl::Cord(absl::StrCat(static_cast<int>(reason))));
}

std::optional<ShedReason> StatedShedReason(const absl::Status& status) {
  const auto payload = status.GetPayload(kReasonPayload);
  int number = 0;
  if (!payload || !absl::SimpleAtoi(std::string(*payload), &number)) return std::nullopt;
  return static_cast<ShedReason>(number);
}

std::optional<ShedReason> ShedReasonOf(const absl::Status& status) {
  if (const auto set = StatedShedReason(status)) return set;
  switch (status.code()) {
    case absl::StatusCode::kResourceExhausted:
      return ShedReason::kQueueFull;
    case absl::StatusCode::kCancelled:
      return ShedReason::kCancelled;
    case absl::StatusCode::kDeadlineExceeded:
      return ShedReason::kDeadline;
    case absl::StatusCode::kUnavailable:
      return ShedReason::kDraining;
    default:
      return std::nullopt;
  }
}

}  // namespace saccade::server
