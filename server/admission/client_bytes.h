// Each client's share of --max-inflight-bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace saccade::server {

// One client may hold half of the server's bound, or one message of the largest size if that is more. Bytes
// without a client (an empty key) have no share. Not thread-safe.
class ClientBytes {
 public:
  // --max-inflight-bytes and --max-message-bytes.
  ClientBytes(int64_t max_inflight_bytes, int64_t max_message_bytes);

  // Checks whether `more` fits in addition to what the client holds; `own` of that belongs to the same
  // request. RESOURCE_EXHAUSTED states `retry_after`; INVALID_ARGUMENT means that waiting cannot help.
  absl::Status Check(absl::string_view client, int64_t more, int64_t own, absl::Duration retry_after) const;

  void Add(absl::string_view client, int64_t bytes);
  void Return(absl::string_view client, int64_t bytes);

  int64_t held(absl::string_view client) const;
  // Number of clients that hold any.
  size_t clients() const { return held_.size(); }
  // Bytes that one client may hold.
  int64_t max() const { return max_; }

 private:
  const int64_t max_;
  // Names the flag that `max_` comes from.
  const std::string bound_;
  // Clients that hold at least one byte.
  // std::map, because Abseil's tables are broken after an allocation that fails while they grow.
  std::map<std::string, int64_t, std::less<>> held_;
};

}  // namespace saccade::server
