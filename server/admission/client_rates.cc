#include "server/admission/client_rates.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "server/core/retry_hint.h"
#include "server/core/shed_reason.h"

namespace saccade::server {
namespace {

int64_t BurstOf(const ClientRateOptions& options) {
  if (options.burst > 0) return options.burst;
  return std::max<int64_t>(1, std::llround(options.requests_per_second));
}

absl::Duration IntervalOf(const ClientRateOptions& options) {
  return options.requests_per_second > 0 ? absl::Seconds(1) / options.requests_per_second
                                         : absl::ZeroDuration();
}

}  // namespace

ClientRates::ClientRates(const ClientRateOptions& options)
    : options_(options), burst_(BurstOf(options)), interval_(IntervalOf(options)) {}

absl::Status ClientRates::Take(absl::string_view client, absl::Time now) {
  if (interval_ == absl::ZeroDuration()) return absl::OkStatus();
  Bucket& bucket = Find(client);
  const absl::Time next = bucket.full_at - interval_ * (burst_ - 1);
  if (next <= now) {
    bucket.full_at = std::max(bucket.full_at, now) + interval_;
    return absl::OkStatus();
  }
  absl::Status refused = absl::ResourceExhaustedError(
      absl::StrCat("client '", absl::CHexEscape(client), "' sends more than ", options_.requests_per_second,
                   " requests per second (",
                   options_.of_token ? "rate= of its line in --token-file" : "--client-requests-per-second",
                   "; at most ", burst_, options_.of_token ? " at once" : " at once, --client-burst",
                   "); try again in ", absl::FormatDuration(next - now)));
  SetShedReason(refused, ShedReason::kClientRate);
  SetRetryAfter(refused, next - now);
  return refused;
}

ClientRates::Bucket& ClientRates::Find(absl::string_view client) {
  if (const auto found = by_name_.find(client); found != by_name_.end()) {
    by_use_.splice(by_use_.begin(), by_use_, found->second);
    return by_use_.front();
  }
  if (clients() >= options_.max_clients) {
    by_name_.erase(by_use_.back().client);
    by_use_.pop_back();
  }
  by_use_.push_front({.client = std::string(client)});
  by_name_.emplace(by_use_.front().client, by_use_.begin());
  return by_use_.front();
}

}  // namespace saccade::server
