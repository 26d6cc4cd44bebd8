#include "server/admission/client_quotas.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "server/core/client_key.h"
#include "server/core/retry_hint.h"
#include "server/core/shed_reason.h"

namespace saccade::server {

void ClientQuotas::Set(const ClientQuotaTable& table) {
  std::map<std::string, Limited, std::less<>> limited;
  for (const auto& [client, quota] : table) {
    const auto known = limited_.find(client);
    if (known != limited_.end() && known->second.quota.requests_per_second == quota.requests_per_second) {
      limited.emplace(client, Limited{quota, std::move(known->second.rate)});
      continue;
    }
    ClientRates rate({.requests_per_second = quota.requests_per_second, .max_clients = 1, .of_token = true});
    limited.emplace(client, Limited{quota, std::move(rate)});
  }
  limited_ = std::move(limited);
}

bool ClientQuotas::HasRate(absl::string_view client) const {
  const auto known = limited_.find(client);
  return known != limited_.end() && known->second.quota.requests_per_second > 0;
}

absl::Status ClientQuotas::TakeFromRate(absl::string_view client, absl::Time now) {
  return limited_.find(client)->second.rate.Take(client, now);
}

int64_t ClientQuotas::max_requests(absl::string_view client) const {
  const auto known = limited_.find(client);
  return known == limited_.end() ? 0 : known->second.quota.max_requests;
}

absl::Status ClientQuotas::Check(absl::string_view client, int64_t more, absl::Duration retry_after) const {
  const int64_t max = max_requests(client);
  if (max == 0 || more == 0 || held(client) + more <= max) return absl::OkStatus();
  absl::Status refused = absl::ResourceExhaustedError(absl::StrCat(
      "client '", absl::CHexEscape(client), "' has ", held(client), " requests in flight; its limit is ", max,
      " (inflight= of its line in --token-file); try again in ", absl::FormatDuration(retry_after)));
  SetShedReason(refused, ShedReason::kClientRequests);
  SetRetryAfter(refused, retry_after);
  return refused;
}

void ClientQuotas::Add(absl::string_view client, int64_t requests) {
  if (requests > 0 && IsTokenKey(client)) held_[std::string(client)] += requests;
}

void ClientQuotas::Return(absl::string_view client, int64_t requests) {
  if (requests == 0) return;
  const auto holds = held_.find(client);
  if (holds == held_.end()) return;
  holds->second -= requests;
  if (holds->second <= 0) held_.erase(holds);
}

int64_t ClientQuotas::held(absl::string_view client) const {
  const auto holds = held_.find(client);
  return holds == held_.end() ? 0 : holds->second;
}

}  // namespace saccade::server
