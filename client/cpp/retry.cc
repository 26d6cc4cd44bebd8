#include "client/cpp/retry.h"

#include <algorithm>
#include <random>

#include "client/cpp/status.h"

namespace saccade::client {
namespace {

constexpr absl::Duration kFirstBackoff = absl::Milliseconds(100);
constexpr absl::Duration kMaxBackoff = absl::Seconds(5);
// A longer wait is reported to the caller instead of slept through.
constexpr absl::Duration kMaxRequestedDelay = absl::Seconds(15);

}  // namespace

std::optional<absl::Duration> RetryDelay(const absl::Status& status, int repeated) {
  const std::optional<absl::Duration> asked = RetryAfter(status);
  // A message that is too large is RESOURCE_EXHAUSTED as well, but has no retry hint.
  const bool overloaded = status.code() == absl::StatusCode::kResourceExhausted && asked;
  if (asked && *asked > kMaxRequestedDelay) return std::nullopt;
  // The daemon will have the same certificate on the next attempt.
  if (IsUntrusted(status)) return std::nullopt;
  // gRPC's server answers calls that arrive while its port closes with CANCELLED.
  const bool gone = absl::IsUnavailable(status) || absl::IsCancelled(status);
  if (!overloaded && !gone) return std::nullopt;
  thread_local std::minstd_rand random(std::random_device{}());
  const absl::Duration backoff = std::min(kMaxBackoff, kFirstBackoff * (1 << std::min(repeated, 10)));
  const double share = std::uniform_real_distribution<double>(0.5, 1)(random);
  return asked.value_or(absl::ZeroDuration()) + share * backoff;
}

}  // namespace saccade::client
