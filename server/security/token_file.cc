#include "server/security/token_file.h"

#include <openssl/evp.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "server/core/client_key.h"

namespace saccade::server {
namespace {

// Bytes of a digest that name a token.
constexpr size_t kKeyBytes = 8;

constexpr char kForm[] =
    "expected 'TOKEN SCOPE[,SCOPE...]' with the scopes predict, admin and metrics, or 'TOKEN "
    "predict:MODEL[,MODEL...]', and then at most one each of rate=REQUESTS_PER_SECOND and inflight=REQUESTS";

// The characters allowed after "Bearer" (RFC 6750).
bool IsTokenByte(char byte) {
  return absl::ascii_isalnum(static_cast<unsigned char>(byte)) ||
         absl::string_view("-._~+/=").find(byte) != absl::string_view::npos;
}

// Returns 0 if a name is not a scope.
uint8_t ScopesOf(absl::string_view names) {
  uint8_t scopes = 0;
  for (const absl::string_view name : absl::StrSplit(names, ',')) {
    const auto scope = ScopeNamed(name);
    if (!scope) return 0;
    scopes |= static_cast<uint8_t>(*scope);
  }
  return scopes;
}

constexpr absl::string_view kLimited = "predict:";

// What a token's second word allows. `scopes` is 0 if the word is wrong.
struct Permissions {
  uint8_t scopes = 0;
  std::vector<std::string> models;
};

Permissions PermissionsOf(absl::string_view word) {
  // "predict:" begins the word, or follows the comma after other scopes.
  uint8_t others = 0;
  if (!absl::StartsWith(word, kLimited)) {
    const size_t comma = word.find(absl::StrCat(",", kLimited));
    others = ScopesOf(word.substr(0, comma));
    if (comma == absl::string_view::npos || others == 0) return {.scopes = others, .models = {}};
    word.remove_prefix(comma + 1);
  }
  std::vector<std::string> models = absl::StrSplit(word.substr(kLimited.size()), ',');
  if (models.size() > kMaxModelsOfToken || absl::c_linear_search(models, "")) return {};
  return {.scopes = static_cast<uint8_t>(others | static_cast<uint8_t>(Scope::kPredict)),
          .models = std::move(models)};
}

// Reads the words after the scopes into `token`. Returns the problem, empty if there is none.
std::string ReadLimits(absl::Span<const absl::string_view> words, KnownToken& token) {
  for (absl::string_view word : words) {
    if (absl::ConsumePrefix(&word, "rate=")) {
      if (token.requests_per_second != 0) return "has rate= twice";
      double rate = 0;
      if (!absl::SimpleAtod(word, &rate) || !(rate >= kMinTokenRate && rate <= kMaxTokenRate)) {
        return absl::StrCat("the value of rate= is not a number from ", kMinTokenRate, " to ", kMaxTokenRate);
      }
      token.requests_per_second = rate;
    } else if (absl::ConsumePrefix(&word, "inflight=")) {
      if (token.max_requests != 0) return "has inflight= twice";
      int64_t requests = 0;
      if (!absl::SimpleAtoi(word, &requests) || requests < 1 || requests > kMaxTokenRequests) {
        return absl::StrCat("the value of inflight= is not an integer from 1 to ", kMaxTokenRequests);
      }
      token.max_requests = requests;
    } else {
      return absl::StrCat("a word after the scopes is not a limit; ", kForm);
    }
  }
  return "";
}

// Describes the problem of a line; empty if there is none. Does not quote the line: if its columns are
// swapped, that would log a token.
std::string Problem(absl::string_view token, size_t fields, uint8_t scopes) {
  if (fields < 2) return absl::StrCat("has 1 word; ", kForm);
  if (token.size() < kMinTokenBytes || token.size() > kMaxTokenBytes) {
    return absl::StrCat("the token has ", token.size(), " characters, expected ", kMinTokenBytes, " to ",
                        kMaxTokenBytes);
  }
  if (!std::all_of(token.begin(), token.end(), IsTokenByte)) {
    return "the token has invalid characters; expected letters, digits and -._~+/=";
  }
  if (scopes == 0) return absl::StrCat("the text after the token is not a list of scopes; ", kForm);
  return "";
}

}  // namespace

TokenDigest DigestOf(absl::string_view token) {
  TokenDigest digest;
  // EVP_Digest fails only if out of memory. Abort: an uninitialised digest could match a wrong token.
  if (EVP_Digest(token.data(), token.size(), digest.data(), nullptr, EVP_sha256(), nullptr) != 1)
    std::abort();
  return digest;
}

std::string TokenKeyOf(const TokenDigest& digest) {
  const absl::string_view start(reinterpret_cast<const char*>(digest.data()), kKeyBytes);
  return absl::StrCat(kTokenKeyPrefix, absl::BytesToHexString(start));
}

absl::StatusOr<std::vector<KnownToken>> ParseTokenFile(absl::string_view subject, absl::string_view text) {
  std::vector<KnownToken> tokens;
  std::map<TokenDigest, int> line_of;
  int number = 0;
  for (const absl::string_view whole : absl::StrSplit(text, '\n')) {
    ++number;
    const absl::string_view line = absl::StripAsciiWhitespace(whole);
    if (line.empty() || line[0] == '#') continue;
    const std::vector<absl::string_view> fields =
        absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    Permissions permissions = fields.size() >= 2 ? PermissionsOf(fields[1]) : Permissions();
    std::string problem = Problem(fields[0], fields.size(), permissions.scopes);
    KnownToken token;
    if (problem.empty()) problem = ReadLimits(absl::MakeConstSpan(fields).subspan(2), token);
    if (!problem.empty())
      return absl::InvalidArgumentError(absl::StrCat(subject, " line ", number, ": ", problem));
    if (tokens.size() == kMaxTokens) {
      return absl::InvalidArgumentError(
          absl::StrCat(subject, " line ", number, ": more than ", kMaxTokens, " tokens"));
    }
    const TokenDigest digest = DigestOf(fields[0]);
    const auto [known, is_new] = line_of.emplace(digest, number);
    if (!is_new) {
      return absl::InvalidArgumentError(
          absl::StrCat(subject, " line ", number, ": the token is a duplicate of line ", known->second));
    }
    token.digest = digest;
    token.key = TokenKeyOf(digest);
    token.scopes = permissions.scopes;
    token.models = std::move(permissions.models);
    tokens.push_back(std::move(token));
  }
  if (tokens.empty()) return absl::InvalidArgumentError(absl::StrCat(subject, " contains no token; ", kForm));
  return tokens;
}

}  // namespace saccade::server
