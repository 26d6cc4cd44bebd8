#include "server/core/retry_hint.h"

#include <cstdint>
#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace saccade::server {
namespace {

// Whole microseconds, in decimal.
constexpr absl::string_view kRetryPayload = "saccade/retry-after-us";

}  // namespace

void SetRetryAfter(absl::Status& status, absl::Duration after) {
  status.SetPayload(kRetryPayload, absl::Cord(absl::StrCat(absl::ToInt64Microseconds(after))));
}

absl::Status OutOfMemory(absl::string_view message) {
  absl::Status status = absl::ResourceExhaustedError(message);
  SetRetryAfter(status, absl::Seconds(1));
  return status;
}

std::optional<absl::Duration> RetryAfter(const absl::Status& status) {
  const auto payload = status.GetPayload(kRetryPayload);
  int64_t microseconds = 0;
  if (!payload || !absl::SimpleAtoi(std::string(*payload), &microseconds)) return std::nullopt;
  return absl::Microseconds(microseconds);
}

}  // namespace saccade::server
