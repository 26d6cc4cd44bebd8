#include "server/admission/client_bytes.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/core/retry_hint.h"
#include "server/core/shed_reason.h"

namespace saccade::server {

ClientBytes::ClientBytes(int64_t max_inflight_bytes, int64_t max_message_bytes)
    : max_(std::max(max_inflight_bytes / 2, std::min(max_message_bytes, max_inflight_bytes))),
      bound_(max_ > max_inflight_bytes / 2 ? "--max-message-bytes" : "half of --max-inflight-bytes") {}

absl::Status ClientBytes::Check(absl::string_view client, int64_t more, int64_t own,
                                absl::Duration retry_after) const {
  if (client.empty()) return absl::OkStatus();
  const int64_t held_now = held(client);
  if (more <= max_ - held_now) return absl::OkStatus();
  if (more > max_ - own) {
    return absl::InvalidArgumentError(absl::StrCat("the request needs ", more, " bytes in addition to the ",
                                                   own, " that it already holds, more than the maximum of ",
                                                   max_, " that the server allows one client in total (",
                                                   bound_, ")"));
  }
  absl::Status refused = absl::ResourceExhaustedError(
      absl::StrCat("the client is at its limit of ", max_, " bytes in flight (", bound_, "): ", held_now,
                   " are in use, the request needs ", more, "; try again later"));
  SetShedReason(refused, ShedReason::kBytes);
  SetRetryAfter(refused, retry_after);
  return refused;
}

void ClientBytes::Add(absl::string_view client, int64_t bytes) {
  if (client.empty() || bytes == 0) return;
  held_[std::string(client)] += bytes;
}

void ClientBytes::Return(absl::string_view client, int64_t bytes) {
  if (client.empty() || bytes == 0) return;
  const auto found = held_.find(client);
  found->second -= bytes;
  if (found->second == 0) held_.erase(found);
}

int64_t ClientBytes::held(absl::string_view client) const {
  const auto found = held_.find(client);
  return found == held_.end() ? 0 : found->second;
}

}  // namespace saccade::server
