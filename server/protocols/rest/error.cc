#include "server/protocols/rest/error.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/core/retry_hint.h"
#include "server/core/shed_reason.h"

namespace saccade::server {
namespace {

int StatusOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kFailedPrecondition:
      return 400;
    case absl::StatusCode::kPermissionDenied:
      return 403;
    case absl::StatusCode::kNotFound:
      return 404;
    case absl::StatusCode::kAlreadyExists:
      return 409;
    case absl::StatusCode::kResourceExhausted:
      // A rejection may be retried; a request that is too large may not.
      return RetryAfter(status) || StatedShedReason(status) ? 429 : 413;
    case absl::StatusCode::kUnimplemented:
      return 501;
    case absl::StatusCode::kUnavailable:
    // The client has probably disconnected; if not, it may retry.
    case absl::StatusCode::kCancelled:
      return 503;
    case absl::StatusCode::kDeadlineExceeded:
      return 504;
    default:
      return 500;
  }
}

}  // namespace

HttpResponse ToHttp(const absl::Status& status, RetryJitter* jitter) {
  HttpResponse response = HttpError(StatusOf(status), absl::string_view(status.message()));
  if (response.status != 429 && response.status != 503) return response;
  const absl::Duration after = jitter->Spread(RetryAfter(status).value_or(absl::Seconds(1)));
  const int64_t seconds = std::max<int64_t>(1, absl::ToInt64Seconds(absl::Ceil(after, absl::Seconds(1))));
  response.headers.emplace_back("Retry-After", absl::StrCat(seconds));
  return response;
}

}  // namespace saccade::server
