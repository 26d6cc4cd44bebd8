#include "client/retry.h"

#include <algorithm>
#include <random>

#include "client/status.h"

namespace saccade::client {
namespace {

constexpr absl::Duration kFirst = absl::Milliseconds(100);
constexpr absl::Duration kMost = absl::Seconds(5);
// Who is asked to wait longer had better be told than left to wait.
constexpr absl::Duration kPatience = absl::Seconds(15);

}  // namespace

std::optional<absl::Duration> RetryDelay(const absl::Status& status, int repeated) {
  const std::optional<absl::Duration> asked = RetryAfter(status);
  // A message that is too large is RESOURCE_EXHAUSTED as well, and comes without a hint.
  const bool overloaded = status.code() == absl::StatusCode::kResourceExhausted && asked;
  if (asked && *asked > kPatience) return std::nullopt;
  // It will have the same certificate then.
  if (IsUntrusted(status)) return std::nullopt;
  // What gRPC's server answers to calls that reach it in the instant in which its port closes.
  const bool gone = absl::IsUnavailable(status) || absl::IsCancelled(status);
  if (!overloaded && !gone) return std::nullopt;
  thread_local std::minstd_rand random(std::random_device{}());
  const absl::Duration backoff = std::min(kMost, kFirst * (1 << std::min(repeated, 10)));
  const double share = std::uniform_real_distribution<double>(0.5, 1)(random);
  return asked.value_or(absl::ZeroDuration()) + share * backoff;
}

}  // namespace saccade::client
