// The limits of single clients: what the line of a token in --token-file allows.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/admission/client_rates.h"

namespace saccade::server {

struct ClientQuota {
  // rate=; 0 means that --client-requests-per-second holds.
  double requests_per_second = 0;
  // inflight=, the maximum number of admitted requests at once; 0 means no limit.
  int64_t max_requests = 0;
};

// By the client's key.
using ClientQuotaTable = std::map<std::string, ClientQuota, std::less<>>;

// Not thread-safe.
class ClientQuotas {
 public:
  // Replaces all quotas. A client that keeps its rate keeps what it used of it; requests in flight stay
  // counted.
  void Set(const ClientQuotaTable& table);

  // Whether the client has a rate of its own, which replaces the rate that all clients have.
  bool HasRate(absl::string_view client) const;

  // Takes one request from the client's own rate. RESOURCE_EXHAUSTED with the time until the next one.
  // REQUIRES: HasRate(client).
  absl::Status TakeFromRate(absl::string_view client, absl::Time now);

  // Requests that the client may have in flight; 0 if it has no such quota.
  int64_t max_requests(absl::string_view client) const;
  // Checks whether the client may have `more` requests in flight. RESOURCE_EXHAUSTED states `retry_after`.
  absl::Status Check(absl::string_view client, int64_t more, absl::Duration retry_after) const;

  // Count the requests in flight of clients that are known by a token, also of those without a quota, because
  // a quota may come while they are in flight. Ignore other clients.
  void Add(absl::string_view client, int64_t requests);
  void Return(absl::string_view client, int64_t requests);

  int64_t held(absl::string_view client) const;

 private:
  struct Limited {
    ClientQuota quota;
    ClientRates rate;
  };

  // std::map, because Abseil's tables are broken after an allocation that fails while they grow.
  std::map<std::string, Limited, std::less<>> limited_;
  // Clients that hold at least one request.
  std::map<std::string, int64_t, std::less<>> held_;
};

}  // namespace saccade::server
