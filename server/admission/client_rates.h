// How fast each client may send: a token bucket each.
#pragma once

#include <cstdint>
#include <list>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace saccade::server {

struct ClientRateOptions {
  // --client-requests-per-second; 0 has no limit.
  double requests_per_second = 0;

  // --client-burst. Requests that may come at once after a pause; 0 is one second's, and at least 1.
  int64_t burst = 0;

  // Clients remembered. The least recently seen is forgotten for a new one, and would begin with a full
  // bucket: whoever has more addresses than this is not held back.
  int64_t max_clients = 10'000;
};

// Not thread-safe.
class ClientRates {
 public:
  explicit ClientRates(const ClientRateOptions& options);

  // Counts a request of `client`, or refuses it: RESOURCE_EXHAUSTED with the time until its next token.
  absl::Status Take(absl::string_view client, absl::Time now);

  int64_t clients() const { return static_cast<int64_t>(by_use_.size()); }

 private:
  struct Bucket {
    std::string client;
    // One token comes in each interval until then, when as many are there as it holds.
    absl::Time full_at = absl::InfinitePast();
  };

  Bucket& Find(absl::string_view client);

  const ClientRateOptions options_;
  const int64_t burst_;
  const absl::Duration interval_;
  // The most recently seen first.
  std::list<Bucket> by_use_;
  // Names lie in by_use_.
  absl::flat_hash_map<absl::string_view, std::list<Bucket>::iterator> by_name_;
};

}  // namespace saccade::server
