#include "client/cli/output/failure.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cpp/status.h"

namespace saccade::client {

int ExitCodeOf(const absl::Status& status) {
  return status.ok() ? kExitOk : 64 + static_cast<int>(status.code());
}

std::string CodeName(absl::StatusCode code) { return absl::StatusCodeToString(code); }

namespace {

// The command for the task that a model is for, if the daemon says that the request is for another task.
std::string CommandMeant(absl::string_view message) {
  static constexpr std::pair<absl::string_view, absl::string_view> kCommands[] = {
      {"classification", "classify"}, {"detection", "detect"}, {"segmentation", "segment"},
      {"stereo", "stereo"},           {"depth", "depth"},      {"actions", "actions"},
      {"restoration", "restore"}};
  for (const auto& [task, command] : kCommands) {
    if (absl::StrContains(message, absl::StrCat("is for ", task, "; omit these options")))
      return std::string(command);
  }
  // These have no options, so the daemon says it in other words.
  if (absl::StrContains(message, "makes embeddings, which have no options")) return "embed";
  return "";
}

}  // namespace

FailureText TextOf(const absl::Status& status, absl::string_view url) {
  const std::string message(status.message());
  if (IsUnreachable(status)) {
    const bool unknown_name = absl::StrContains(message, "DNS") || absl::StrContains(message, "resolution");
    return {absl::StrCat("no daemon answers at ", url, unknown_name ? " (no such host)" : ""),
            "start one with saccaded --model-repository DIR, or name another with --url"};
  }
  FailureText result{absl::StrCat(message, " (", CodeName(status.code()), ")"), ""};
  if (IsUntrusted(status) && absl::StrContains(message, "is not trusted")) {
    result.advice = "give the authorities to trust with --tls-ca";
  } else if (IsUntrusted(status) && absl::StrContains(message, "is not for the name")) {
    result.advice = "give the certificate's name with --tls-name";
  } else if (absl::StrContains(message, "or require TLS")) {
    result.advice = "if it requires TLS, add --tls, and --tls-ca for an authority of your own";
  } else if (const std::string command = CommandMeant(message); !command.empty()) {
    result.advice = absl::StrCat("ask it with saccade ", command);
  }
  switch (status.code()) {
    case absl::StatusCode::kUnauthenticated:
      result.advice = "give a valid token with --token-file or SACCADE_TOKEN";
      break;
    case absl::StatusCode::kDeadlineExceeded:
      result.advice = "raise --timeout, or check with saccade models how many requests are queued";
      break;
    case absl::StatusCode::kNotFound:
      result.advice = "saccade models lists what is served";
      break;
    case absl::StatusCode::kUnimplemented:
      result.advice = absl::StrCat("is a saccaded of this version running at ", url, "?");
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
