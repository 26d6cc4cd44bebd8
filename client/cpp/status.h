// Details of a call's error beyond its code and message.
#pragma once

#include <optional>
#include <string>
#include "absl/strings/string_view.h"

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace saccade::client {

// Payload of a failed call: the serialised google.rpc.Status that the daemon sent, if it sent one.
inline constexpr absl::string_view kDetailsPayload = "type.googleapis.com/google.rpc.Status";

// True if no daemon could be reached at the address; false if a daemon returned the error.
bool IsUnreachable(const absl::Status& status);

// True if a server was reached but the TLS handshake failed: its certificate is not trusted, is for another
// name or is not valid now, or the server does not speak TLS.
bool IsUntrusted(const absl::Status& status);

// How long the daemon asks to wait before a retry; empty if it did not say.
std::optional<absl::Duration> RetryAfter(const absl::Status& status);

// For code that creates such statuses: the client itself, and tests.
void SetUnreachable(absl::Status& status);
void SetUntrusted(absl::Status& status);
void SetRetryAfter(absl::Status& status, absl::string_view milliseconds);

}  // namespace saccade::client
