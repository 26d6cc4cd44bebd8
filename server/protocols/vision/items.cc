#include "server/protocols/vision/items.h"

#include <cstdint>
#include <cstdlib>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "server/core/bad_field.h"
#include "server/core/retry_hint.h"
#include "server/core/shed_reason.h"
#include "server/protocols/vision/errors.h"
#include "server/protocols/vision/messages.h"

namespace saccade::server {
namespace {

// Limits of google.protobuf.Duration: its seconds, and the nanoseconds in a second.
constexpr int64_t kMaxSeconds = 315'576'000'000;
constexpr int32_t kNanoseconds = 1'000'000'000;

}  // namespace

absl::StatusOr<absl::Duration> TimeoutOf(const v1::PredictStreamRequest& message) {
  if (!message.has_timeout()) return absl::InfiniteDuration();
  const int64_t seconds = message.timeout().seconds();
  const int32_t nanos = message.timeout().nanos();
  const bool valid = seconds >= 0 && seconds <= kMaxSeconds && nanos >= 0 && nanos < kNanoseconds;
  if (valid && (seconds > 0 || nanos > 0)) return absl::Seconds(seconds) + absl::Nanoseconds(nanos);
  return InvalidField("timeout", absl::StrCat("is ", seconds, " s and ", nanos,
                                              " ns; expected a positive duration, or omit the field"));
}

void SetItemError(const absl::Status& status, RetryJitter* jitter, v1::ItemError* message) {
  message->set_code(static_cast<int32_t>(status.code()));
  message->set_message(std::string(status.message()));
  message->set_field(BadFieldOf(status).value_or(""));
  if (const auto reason = StatedShedReason(status)) {
    message->set_reason(absl::AsciiStrToUpper(ShedReasonName(*reason)));
  }
  if (const auto retry = RetryAfter(status))
    SetDuration(jitter->Spread(*retry), message->mutable_retry_after());
}

}  // namespace saccade::server
