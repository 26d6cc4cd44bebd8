#include "server/admission/client_shares.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/core/retry_hint.h"
#include "server/core/shed_reason.h"

namespace saccade::server {
namespace {

bool IsZero(const Inflight& amounts) {
  return amounts.requests == 0 && amounts.bytes == 0 && amounts.decoded_bytes == 0;
}

}  // namespace

struct ClientShares::Shared {
  const char* name;
  const char* flag;
  int64_t Inflight::* amount;
  ShedReason reason;
};

ClientShares::ClientShares(const Bounds& bounds)
    : max_bytes_(std::max(bounds.bytes / 2, std::min(bounds.message_bytes, bounds.bytes))),
      bytes_bound_(max_bytes_ > bounds.bytes / 2 ? "--max-message-bytes" : "half of --max-inflight-bytes"),
      // At least one, so that every client is served.
      half_({.requests = std::max<int64_t>(1, bounds.requests / 2),
             .decoded_bytes = bounds.decoded_bytes / 2}) {}

absl::Status ClientShares::Check(absl::string_view client, const Inflight& more, const Inflight& own,
                                 absl::Time now, absl::Duration retry_after) const {
  if (client.empty()) return absl::OkStatus();
  const Inflight held_now = held(client);
  if (more.bytes > 0) {
    absl::Status fits = CheckBytes(held_now, more.bytes, own.bytes, retry_after);
    if (!fits.ok()) return fits;
  }
  constexpr Shared kShared[] = {
      {"requests", "--max-inflight-requests", &Inflight::requests, ShedReason::kClientRequests},
      {"decoded bytes", "--max-decoded-bytes", &Inflight::decoded_bytes, ShedReason::kClientDecodedBytes},
  };
  for (const Shared& shared : kShared) {
    absl::Status fits = CheckShared(shared, client, held_now, more, now, retry_after);
    if (!fits.ok()) return fits;
  }
  return absl::OkStatus();
}

absl::Status ClientShares::CheckBytes(const Inflight& held_now, int64_t more, int64_t own,
                                      absl::Duration retry_after) const {
  if (more <= max_bytes_ - held_now.bytes) return absl::OkStatus();
  if (more > max_bytes_ - own) {
    return absl::InvalidArgumentError(
        absl::StrCat("the request needs ", more, " bytes in addition to the ", own,
                     " that it already holds, more than the maximum of ", max_bytes_,
                     " that the server allows one client in total (", bytes_bound_, ")"));
  }
  absl::Status refused = absl::ResourceExhaustedError(
      absl::StrCat("the client is at its limit of ", max_bytes_, " bytes in flight (", bytes_bound_,
                   "): ", held_now.bytes, " are in use, the request needs ", more, "; try again later"));
  SetShedReason(refused, ShedReason::kClientBytes);
  SetRetryAfter(refused, retry_after);
  return refused;
}

// A large picture in tiles may need more than half, so a client that is alone gets what is there. Another
// client finds no room once at most: from then on it is company.
absl::Status ClientShares::CheckShared(const Shared& shared, absl::string_view client,
                                       const Inflight& held_now, const Inflight& more, absl::Time now,
                                       absl::Duration retry_after) const {
  const int64_t wanted = more.*shared.amount, held = held_now.*shared.amount, max = half_.*shared.amount;
  const bool has_company = now - (client == latest_ ? time_of_others_ : latest_time_) <= kCompanyTime;
  if (wanted == 0 || !has_company || wanted <= max - held) return absl::OkStatus();
  absl::Status refused = absl::ResourceExhaustedError(absl::StrCat(
      "the client is at its limit of ", max, " ", shared.name, " in flight (half of ", shared.flag,
      ", because other clients send requests, too): ", held, " are in use, the request needs ", wanted,
      wanted > max ? absl::StrCat("; so much is only accepted while no other client sends "
                                  "requests: send a smaller one, or raise ",
                                  shared.flag)
                   : std::string("; try again later")));
  SetShedReason(refused, shared.reason);
  SetRetryAfter(refused, retry_after);
  return refused;
}

void ClientShares::NoteArrival(absl::string_view client, absl::Time now) {
  if (client.empty()) return;
  if (client != latest_) {
    latest_.assign(client.data(), client.size());
    time_of_others_ = latest_time_;
  }
  latest_time_ = now;
}

void ClientShares::Add(absl::string_view client, const Inflight& more) {
  if (client.empty() || IsZero(more)) return;
  auto found = held_.find(client);
  if (found == held_.end()) found = held_.emplace(std::string(client), Inflight()).first;
  found->second.requests += more.requests;
  found->second.bytes += more.bytes;
  found->second.decoded_bytes += more.decoded_bytes;
}

void ClientShares::Return(absl::string_view client, const Inflight& held) {
  if (client.empty() || IsZero(held)) return;
  const auto found = held_.find(client);
  found->second.requests -= held.requests;
  found->second.bytes -= held.bytes;
  found->second.decoded_bytes -= held.decoded_bytes;
  if (IsZero(found->second)) held_.erase(found);
}

Inflight ClientShares::held(absl::string_view client) const {
  const auto found = held_.find(client);
  return found == held_.end() ? Inflight() : found->second;
}

}  // namespace saccade::server
