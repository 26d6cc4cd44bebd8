// The format of --token-file, which lists the valid tokens and their scopes.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/security/scopes.h"

namespace saccade::server {

// SHA-256 of a token.
using TokenDigest = std::array<unsigned char, 32>;

TokenDigest DigestOf(absl::string_view token);

// Names a token in limits, logs and errors: "token:" and the first 16 hexadecimal digits of its digest.
std::string TokenKeyOf(const TokenDigest& digest);

// Holds only the digest of a token, not the token itself.
struct KnownToken {
  TokenDigest digest;
  std::string key;
  // Bitwise or of its Scope values.
  uint8_t scopes = 0;
  // The models that it may compute; empty: all.
  std::vector<std::string> models = {};
  // Requests per second that it may send; 0: as many as any client.
  double requests_per_second = 0;
  // Maximum number of requests that it may have in flight; 0: no limit of its own.
  int64_t max_requests = 0;
};

inline constexpr size_t kMaxTokens = 1000;
inline constexpr size_t kMinTokenBytes = 16;
inline constexpr size_t kMaxTokenBytes = 512;

// Maximum number of models that one line names.
inline constexpr size_t kMaxModelsOfToken = 256;

// Bounds of a token's limits.
inline constexpr double kMinTokenRate = 0.001;
inline constexpr double kMaxTokenRate = 1e6;
inline constexpr int64_t kMaxTokenRequests = 1'000'000;

// Each line is "TOKEN SCOPE[,SCOPE...]", where the scope predict may come last with the models that the token
// is limited to: "TOKEN metrics,predict:model1,model2". Limits may follow, each once: "rate=50" (requests per
// second, with a fraction if need be) and "inflight=8" (requests at once). Empty lines and lines that begin
// with # are skipped. An error begins with `subject` and the line number, and never quotes the file.
absl::StatusOr<std::vector<KnownToken>> ParseTokenFile(absl::string_view subject, absl::string_view text);

}  // namespace saccade::server
