// How the messages of a call may be compressed.
#pragma once

#include <optional>

#include "absl/strings/string_view.h"

namespace saccade::server {

enum class MessageEncoding { kIdentity, kDeflate, kGzip };

// For grpc-accept-encoding.
inline constexpr char kAcceptedEncodings[] = "identity,deflate,gzip";

// The encoding with that name in grpc-encoding; nothing for one that is not supported.
inline std::optional<MessageEncoding> MessageEncodingOf(absl::string_view name) {
  if (name == "identity") return MessageEncoding::kIdentity;
  if (name == "deflate") return MessageEncoding::kDeflate;
  if (name == "gzip") return MessageEncoding::kGzip;
  return std::nullopt;
}

}  // namespace saccade::server
