// What an error of a call tells beyond its code and message.
#pragma once

#include <optional>
#include <string>
#include "absl/strings/string_view.h"

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace saccade::client {

// Payload of a failed call: the google.rpc.Status message the daemon sent with it, serialised, if it sent
// one.
inline constexpr absl::string_view kDetailsPayload = "type.googleapis.com/google.rpc.Status";

// True if the call failed because nobody answered at the address, not because a daemon said so.
bool IsUnreachable(const absl::Status& status);

// True if somebody answered at the address, and TLS could not be agreed on: a certificate that is not
// trusted, not for this name or not valid now, or no TLS there at all.
bool IsUntrusted(const absl::Status& status);

// How long the daemon asks to wait before the call is tried again, if it asked.
std::optional<absl::Duration> RetryAfter(const absl::Status& status);

// For those who make such statuses: the client itself, and tests.
void SetUnreachable(absl::Status& status);
void SetUntrusted(absl::Status& status);
void SetRetryAfter(absl::Status& status, absl::string_view milliseconds);

}  // namespace saccade::client
