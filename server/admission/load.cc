#include "server/admission/load.h"

#include "absl/strings/str_cat.h"
#include "server/core/retry_hint.h"
#include "server/core/shed_reason.h"

namespace saccade::server {
namespace {

struct Dimension {
  const char* name;
  int64_t Inflight::* amount;
  const char* flag;
  const char* parameter;
  ShedReason reason;
};

constexpr Dimension kDimensions[] = {
    {"requests", &Inflight::requests, "--max-inflight-requests", "max_inflight_requests",
     ShedReason::kRequests},
    {"bytes", &Inflight::bytes, "--max-inflight-bytes", "max_inflight_bytes", ShedReason::kBytes},
    {"decoded bytes", &Inflight::decoded_bytes, "--max-decoded-bytes", "max_decoded_bytes",
     ShedReason::kDecodedBytes},
};

}  // namespace

absl::Status Load::Check(const Inflight& more, const Inflight& own, absl::Time now) {
  for (const Dimension& dimension : kDimensions) {
    const int64_t max = max_.*dimension.amount;
    const int64_t wanted = more.*dimension.amount;
    const int64_t held = held_.*dimension.amount;
    if (max == 0 || wanted == 0 || wanted <= max - held) continue;
    const std::string who = model_.empty() ? "the server" : absl::StrCat("model '", model_, "'");
    const std::string bound =
        model_.empty() ? dimension.flag : absl::StrCat(dimension.parameter, " in its config.pbtxt");
    if (wanted > max - own.*dimension.amount) {
      return absl::InvalidArgumentError(absl::StrCat("the request needs ", wanted, " ", dimension.name,
                                                     " in addition to the ", own.*dimension.amount,
                                                     " that it already holds, more than the maximum of ", max,
                                                     " that ", who, " allows in total (", bound, ")"));
    }
    absl::Status refused = absl::ResourceExhaustedError(
        absl::StrCat(who, " is at its limit of ", max, " ", dimension.name, " in flight (", bound,
                     "): ", held, " are in use, the request needs ", wanted, "; try again later"));
    SetShedReason(refused, model_.empty() ? dimension.reason : ShedReason::kModelBound);
    SetRetryAfter(refused, TimeToRetry(now));
    return refused;
  }
  return absl::OkStatus();
}

absl::Duration Load::TimeToRetry(absl::Time now) {
  Advance(now);
  return drain_.TimeFor(held_.requests);
}

void Load::Add(const Inflight& more, absl::Time now) {
  Advance(now);
  held_.requests += more.requests;
  held_.bytes += more.bytes;
  held_.decoded_bytes += more.decoded_bytes;
}

void Load::Return(const Inflight& held, absl::Time now) {
  Advance(now);
  if (held.requests > 0) drain_.Ended();
  held_.requests -= held.requests;
  held_.bytes -= held.bytes;
  held_.decoded_bytes -= held.decoded_bytes;
}

}  // namespace saccade::server
