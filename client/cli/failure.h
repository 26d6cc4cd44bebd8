// What a failed call comes to: an exit code, and plain words.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace saccade::client {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailure = 1;
inline constexpr int kExitUsage = 2;

// 64 plus the canonical code, so that a script can tell a refusal from an overload; 0 for OK.
int ExitCodeOf(const absl::Status& status);

// "INVALID_ARGUMENT" and so on.
std::string CodeName(absl::StatusCode code);

struct FailureText {
  std::string what;
  // What to do about it; empty if the message says all there is.
  std::string advice;
};

// For a call to the daemon at `url`.
FailureText TextOf(const absl::Status& status, absl::string_view url);

}  // namespace saccade::client
