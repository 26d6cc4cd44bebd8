// The file of --token-file: who may call, and what.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/security/scopes.h"

namespace saccade::server {

// SHA-256.
using TokenDigest = std::array<unsigned char, 32>;

TokenDigest DigestOf(absl::string_view token);

// The token itself is not kept.
struct KnownToken {
  TokenDigest digest;
  // Those of its scopes, or-ed.
  uint8_t scopes = 0;
};

inline constexpr size_t kMostTokens = 1000;
inline constexpr size_t kShortestToken = 16;
inline constexpr size_t kLongestToken = 512;

// A line is "TOKEN SCOPE[,SCOPE...]"; empty lines and those that begin with # are passed over. An error
// begins with `subject` and the line's number, and never holds what stands in the file.
absl::StatusOr<std::vector<KnownToken>> ParseTokenFile(absl::string_view subject, absl::string_view text);

}  // namespace saccade::server
