// Exit codes and error messages for failed calls.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace saccade::client {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailure = 1;
inline constexpr int kExitUsage = 2;
// What ExitCodeOf returns for UNAVAILABLE.
inline constexpr int kExitNotServing = 78;

// Returns 64 plus the canonical code, so that scripts can tell the errors apart; 0 for OK.
int ExitCodeOf(const absl::Status& status);

// Returns for example "INVALID_ARGUMENT".
std::string CodeName(absl::StatusCode code);

struct FailureText {
  std::string what;
  // What to do about it; empty if there is nothing to add.
  std::string advice;
};

// Explains the failure of a call to the daemon at `url`.
FailureText TextOf(const absl::Status& status, absl::string_view url);

}  // namespace saccade::client
