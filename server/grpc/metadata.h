// How gRPC writes metadata, messages of errors and times in the fields of HTTP.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/grpc/call.h"
#include "server/http/http_headers.h"

namespace saccade::server {

// For grpc-message: everything but printable ASCII, and '%', becomes %XX. A message that would take more than
// kMaxStatusMessageBytes is cut between two characters and ends with "...": clients accept 8 KiB of trailers
// and report a call with more as failed for that reason.
std::string EncodeStatusMessage(absl::string_view message);
inline constexpr size_t kMaxStatusMessageBytes = 6 << 10;

// Whether the values of fields with that name are base64.
bool IsBinaryName(absl::string_view name);
// Base64 without padding.
std::string EncodeBinary(absl::string_view bytes);
// With or without padding. Nothing if `text` is not base64.
std::optional<std::string> DecodeBinary(absl::string_view text);

// Parses grpc-timeout: up to 8 digits and one of the units H, M, S, m, u, n. Nothing for other texts.
std::optional<absl::Duration> ParseTimeout(absl::string_view text);

// The fields that tell how a call ended: grpc-status, grpc-message, the details, and `end`'s trailers.
HttpHeaders EndFields(const CallEnd& end);

}  // namespace saccade::server
