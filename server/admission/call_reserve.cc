#include "server/admission/call_reserve.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/core/retry_hint.h"
#include "server/core/shed_reason.h"

namespace saccade::server {
namespace {

// When a refused client may try again: the end of a call cannot be predicted.
constexpr absl::Duration kRetryAfter = absl::Seconds(1);

}  // namespace

CallReserve::CallReserve(Options options) : options_(std::move(options)) {}

absl::StatusOr<ByteCharge> CallReserve::Charge(absl::string_view client, int64_t bytes) {
  if (bytes < 0) return absl::InvalidArgumentError(absl::StrCat("cannot charge ", bytes, " bytes"));
  absl::MutexLock lock(&mutex_);
  if (!client.empty()) {
    const auto found = by_client_.find(client);
    const Held held = found == by_client_.end() ? Held() : found->second;
    if (!Fits(held, bytes, options_.max_calls_per_client)) {
      return Refused("the client has", held, bytes, options_.max_calls_per_client, options_.flag_per_client);
    }
  }
  if (!Fits(all_, bytes, options_.max_calls))
    return Refused("all clients together have", all_, bytes, options_.max_calls, options_.flag);
  if (!client.empty()) {
    auto found = by_client_.find(client);
    if (found == by_client_.end()) found = by_client_.emplace(std::string(client), Held()).first;
    ++found->second.calls;
    found->second.bytes += bytes;
  }
  ++all_.calls;
  all_.bytes += bytes;
  try {
    return Issue(this, client, bytes);
  } catch (...) {
    Remove(client, bytes);
    throw;
  }
}

bool CallReserve::Fits(const Held& held, int64_t bytes, int64_t max_calls) const {
  return held.calls < max_calls && bytes <= max_calls * options_.bytes_per_call - held.bytes;
}

absl::Status CallReserve::Refused(absl::string_view whose, const Held& held, int64_t bytes, int64_t max_calls,
                                  const std::string& flag) const {
  const std::string bound =
      held.calls >= max_calls ? absl::StrCat("the maximum is ", max_calls)
                              : absl::StrCat("which hold ", held.bytes, " bytes, and this one needs ", bytes,
                                             "; the maximum is ", max_calls * options_.bytes_per_call);
  absl::Status refused = absl::ResourceExhaustedError(
      absl::StrCat(whose, " ", held.calls, " open ", options_.calls, ", ", bound,
                   flag.empty() ? std::string() : absl::StrCat(" (", flag, ")"), "; ", options_.advice));
  SetShedReason(refused, ShedReason::kBytes);
  SetRetryAfter(refused, kRetryAfter);
  return refused;
}

int64_t CallReserve::calls() const {
  absl::MutexLock lock(&mutex_);
  return all_.calls;
}

int64_t CallReserve::bytes() const {
  absl::MutexLock lock(&mutex_);
  return all_.bytes;
}

void CallReserve::Return(absl::string_view client, int64_t bytes) {
  absl::MutexLock lock(&mutex_);
  Remove(client, bytes);
}

void CallReserve::Remove(absl::string_view client, int64_t bytes) {
  --all_.calls;
  all_.bytes -= bytes;
  if (client.empty()) return;
  const auto found = by_client_.find(client);
  found->second.bytes -= bytes;
  if (--found->second.calls == 0) by_client_.erase(found);
}

}  // namespace saccade::server
