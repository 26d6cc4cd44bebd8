#include "client/cli/failure.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/status.h"

namespace saccade::client {

int ExitCodeOf(const absl::Status& status) {
  return status.ok() ? kExitOk : 64 + static_cast<int>(status.code());
}

std::string CodeName(absl::StatusCode code) { return absl::StatusCodeToString(code); }

FailureText TextOf(const absl::Status& status, absl::string_view url) {
  const std::string message(status.message());
  if (IsUnreachable(status)) {
    const bool unknown_name = absl::StrContains(message, "DNS") || absl::StrContains(message, "resolution");
    return {absl::StrCat("no daemon answers at ", url, unknown_name ? " (no such host)" : ""),
            "start one with saccaded --model-repository DIR, or name another with --url"};
  }
  FailureText result{absl::StrCat(message, " (", CodeName(status.code()), ")"), ""};
  if (IsUntrusted(status) && absl::StrContains(message, "is not trusted")) {
    result.advice = "--tls-ca names the authorities to trust";
  } else if (IsUntrusted(status) && absl::StrContains(message, "is not for the name")) {
    result.advice = "--tls-name says which name it has";
  }
  switch (status.code()) {
    case absl::StatusCode::kUnauthenticated:
      result.advice = "--token-file, or SACCADE_TOKEN, says who asks";
      break;
    case absl::StatusCode::kDeadlineExceeded:
      result.advice = "raise --timeout, or see with saccade models how many requests wait";
      break;
    case absl::StatusCode::kNotFound:
      result.advice = "saccade models lists what is served";
      break;
    case absl::StatusCode::kUnimplemented:
      result.advice = absl::StrCat("is it a saccaded of this version that answers at ", url, "?");
      break;
    default:
      break;
  }
  if (const auto retry = RetryAfter(status)) {
    result.advice = absl::StrCat("try again in ", absl::FormatDuration(*retry));
  }
  return result;
}

}  // namespace saccade::client
