#include "server/net/handshake_rates.h"

#include <algorithm>

#include "absl/cleanup/cleanup.h"

namespace saccade::server {

bool HandshakeRates::Take(const std::string& address, absl::Time now) {
  ForgetFree(now);
  const auto [entry, is_new] = free_at_.try_emplace(address, now);
  const absl::Time free_at = std::max(entry->second, now) + interval_;
  if (is_new) {
    absl::Cleanup forget = [this, entry = entry] { free_at_.erase(entry); };
    by_time_.emplace(free_at, &entry->first);
    std::move(forget).Cancel();
  } else {
    if (free_at - now > max_ahead_) return false;
    auto node = by_time_.extract({entry->second, &entry->first});
    node.value().first = free_at;
    by_time_.insert(std::move(node));
  }
  entry->second = free_at;
  return true;
}

void HandshakeRates::ForgetFree(absl::Time now) {
  while (!by_time_.empty() && by_time_.begin()->first <= now) {
    const auto entry = free_at_.find(*by_time_.begin()->second);
    by_time_.erase(by_time_.begin());
    free_at_.erase(entry);
  }
}

}  // namespace saccade::server
