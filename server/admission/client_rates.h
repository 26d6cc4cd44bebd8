// Rate limit per client, with one token bucket each.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace saccade::server {

struct ClientRateOptions {
  // --client-requests-per-second; 0 means no limit.
  double requests_per_second = 0;

  // --client-burst. Maximum number of requests at once after a pause; 0 means as many as one second allows,
  // at least 1.
  int64_t burst = 0;

  // Maximum number of clients remembered. A new client evicts the least recently seen one, which starts with
  // a full bucket when it returns, so the limit does not hold for clients with more addresses than this.
  int64_t max_clients = 10'000;

  // Whether errors name the token's line in --token-file as the source of the rate, not the flags.
  bool of_token = false;
};

// Not thread-safe.
class ClientRates {
 public:
  explicit ClientRates(const ClientRateOptions& options);

  // Takes a token of `client`, or returns RESOURCE_EXHAUSTED with the time until its next token.
  absl::Status Take(absl::string_view client, absl::Time now);

  int64_t clients() const { return static_cast<int64_t>(by_use_.size()); }

 private:
  struct Bucket {
    std::string client;
    // Time at which the bucket is full again. Until then, one token is added per interval.
    absl::Time full_at = absl::InfinitePast();
  };

  Bucket& Find(absl::string_view client);

  const ClientRateOptions options_;
  const int64_t burst_;
  const absl::Duration interval_;
  // Most recently seen first.
  std::list<Bucket> by_use_;
  // The keys point into by_use_.
  std::map<absl::string_view, std::list<Bucket>::iterator> by_name_;
};

}  // namespace saccade::server
