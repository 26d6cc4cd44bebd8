// Each client's share of --max-inflight-requests, --max-inflight-bytes and --max-decoded-bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/core/inflight.h"

namespace saccade::server {

// One client may hold half of the server's bytes, or one message of the largest size if that is more. Of the
// requests and the decoded bytes it may hold half if another client has sent a request within the last
// kCompanyTime, else all. What has no client (an empty key) has no share. Not thread-safe.
class ClientShares {
 public:
  static constexpr absl::Duration kCompanyTime = absl::Minutes(1);

  struct Bounds {
    // --max-inflight-requests, --max-inflight-bytes, --max-message-bytes and --max-decoded-bytes.
    int64_t requests = 0;
    int64_t bytes = 0;
    int64_t message_bytes = 0;
    int64_t decoded_bytes = 0;
  };
  explicit ClientShares(const Bounds& bounds);

  // Notes a request of the client, or that one asks for decoded bytes, whether it is then accepted or not.
  void NoteArrival(absl::string_view client, absl::Time now);

  // Checks whether `more` fits in addition to what the client holds; `own` of that belongs to the same
  // request. RESOURCE_EXHAUSTED states `retry_after`; INVALID_ARGUMENT means that waiting cannot help.
  absl::Status Check(absl::string_view client, const Inflight& more, const Inflight& own, absl::Time now,
                     absl::Duration retry_after) const;

  // Adds nothing if it throws.
  void Add(absl::string_view client, const Inflight& more);
  void Return(absl::string_view client, const Inflight& held);

  Inflight held(absl::string_view client) const;
  // Number of clients that hold anything.
  size_t clients() const { return held_.size(); }
  // Bytes that one client may hold.
  int64_t max_bytes() const { return max_bytes_; }

 private:
  absl::Status CheckBytes(const Inflight& held_now, int64_t more, int64_t own,
                          absl::Duration retry_after) const;
  // Checks one of the amounts that a client may have whole while it is alone.
  struct Shared;
  absl::Status CheckShared(const Shared& shared, absl::string_view client, const Inflight& held_now,
                           const Inflight& more, absl::Time now, absl::Duration retry_after) const;

  const int64_t max_bytes_;
  // Names the flag that `max_bytes_` comes from.
  const std::string bytes_bound_;
  // Half of what all clients may hold together.
  const Inflight half_;
  // Clients that hold anything.
  // std::map, because Abseil's tables are broken after an allocation that fails while they grow.
  std::map<std::string, Inflight, std::less<>> held_;
  // The client that last came, when it did, and when any other client last did.
  std::string latest_;
  absl::Time latest_time_ = absl::InfinitePast();
  absl::Time time_of_others_ = absl::InfinitePast();
};

}  // namespace saccade::server
