#include "client/cpp/status.h"

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"

namespace saccade::client {
namespace {

constexpr absl::string_view kUnreachablePayload = "saccade.client/unreachable";
constexpr absl::string_view kUntrustedPayload = "saccade.client/untrusted";
constexpr absl::string_view kRetryPayload = "saccade.client/retry-after-ms";

}  // namespace

bool IsUnreachable(const absl::Status& status) { return status.GetPayload(kUnreachablePayload).has_value(); }

void SetUnreachable(absl::Status& status) { status.SetPayload(kUnreachablePayload, absl::Cord()); }

bool IsUntrusted(const absl::Status& status) { return status.GetPayload(kUntrustedPayload).has_value(); }

void SetUntrusted(absl::Status& status) { status.SetPayload(kUntrustedPayload, absl::Cord()); }

std::optional<absl::Duration> RetryAfter(const absl::Status& status) {
  const auto payload = status.GetPayload(kRetryPayload);
  int64_t milliseconds = 0;
  // To gRPC, a pushback that is negative or not a number means: do not retry.
  if (!payload || !absl::SimpleAtoi(std::string(*payload), &milliseconds) || milliseconds < 0) {
    return std::nullopt;
  }
  return absl::Milliseconds(milliseconds);
}

void SetRetryAfter(absl::Status& status, absl::string_view milliseconds) {
  status.SetPayload(kRetryPayload, absl::Cord(std::string(milliseconds)));
}

}  // namespace saccade::client
