#include "server/security/tokens.h"

#include <openssl/crypto.h>

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/logging/log.h"

namespace saccade::server {
namespace {

constexpr absl::string_view kScheme = "Bearer";
// Maximum bytes of a model's name in an error.
constexpr size_t kShownModel = 100;

// Returns the text after "Bearer "; empty if the header has another form or the token is too long.
absl::string_view TokenOf(absl::string_view authorization) {
  if (!absl::StartsWithIgnoreCase(authorization, kScheme)) return "";
  const absl::string_view rest = authorization.substr(kScheme.size());
  if (rest.empty() || rest[0] != ' ') return "";
  const absl::string_view token = absl::StripAsciiWhitespace(rest);
  return token.size() > kMaxTokenBytes ? "" : token;
}

// Returns the scopes of the token, or 0 if it is unknown. Compares all tokens completely, to take constant
// time.
uint8_t ScopesOf(const std::vector<KnownToken>& known, absl::string_view token) {
  const TokenDigest digest = DigestOf(token);
  unsigned scopes = 0;
  for (const KnownToken& one : known) {
    const unsigned same = CRYPTO_memcmp(one.digest.data(), digest.data(), digest.size()) == 0 ? 1 : 0;
    scopes |= one.scopes & (0U - same);
  }
  return static_cast<uint8_t>(scopes);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Tokens>> Tokens::Open(const std::string& path) {
  std::unique_ptr<Tokens> tokens(new Tokens(path, SecretFiles({path})));
  if (absl::Status read = tokens->Read(); !read.ok()) return read;
  return tokens;
}

absl::Status Tokens::Read() {
  auto text = ReadSecretFile("--token-file", path_);
  if (!text.ok()) return text.status();
  auto known = ParseTokenFile(absl::StrCat("--token-file ", path_), *text);
  Wipe(*text);
  if (!known.ok()) return known.status();
  Log(LogLevel::kInfo, "tokens loaded", {{"file", path_}, {"tokens", known->size()}});
  absl::MutexLock lock(&mutex_);
  known_ = std::make_shared<const Known>(*std::move(known));
  return absl::OkStatus();
}

void Tokens::ReloadIfChanged() {
  file_.ReadIfChanged([this] { return Read(); }, "tokens not reloaded; the current ones stay in use");
}

std::shared_ptr<const Tokens::Known> Tokens::known() const {
  absl::MutexLock lock(&mutex_);
  return known_;
}

std::string Tokens::IdentityOf(absl::Span<const absl::string_view> authorizations) const {
  const absl::string_view token = authorizations.size() == 1 ? TokenOf(authorizations[0]) : "";
  if (token.empty() || ScopesOf(*known(), token) == 0) return "";
  return TokenKeyOf(DigestOf(token));
}

absl::Status Tokens::CheckModel(absl::string_view client, absl::string_view model) const {
  for (const KnownToken& one : *known()) {
    if (one.key != client) continue;
    if (one.models.empty() || absl::c_linear_search(one.models, model)) return absl::OkStatus();
    return absl::PermissionDeniedError(absl::StrCat(
        "the token is limited to other models than '", absl::CHexEscape(model.substr(0, kShownModel)),
        "'; call one of those, or add this one to its line in --token-file"));
  }
  return absl::PermissionDeniedError("the token is not known any more; it may have been revoked");
}

absl::Status Tokens::Check(absl::Span<const absl::string_view> authorizations,
                           std::optional<Scope> needed) const {
  if (needed == Scope::kOpen) return absl::OkStatus();
  if (authorizations.empty()) {
    return absl::UnauthenticatedError("a token is required; send 'authorization: Bearer TOKEN'");
  }
  const absl::string_view token = authorizations.size() == 1 ? TokenOf(authorizations[0]) : "";
  if (token.empty()) {
    return absl::UnauthenticatedError(
        "the authorization header is not a single bearer token; send 'authorization: Bearer TOKEN' exactly "
        "once");
  }
  const uint8_t scopes = ScopesOf(*known(), token);
  if (scopes == 0) return absl::UnauthenticatedError("the token is unknown; it may have been revoked");
  if (!needed) return absl::PermissionDeniedError("no scope permits this call");
  if ((scopes & static_cast<uint8_t>(*needed)) == 0) {
    return absl::PermissionDeniedError(absl::StrCat("the token lacks the scope '", NameOf(*needed),
                                                    "', which this call requires; add it in --token-file"));
  }
  return absl::OkStatus();
}

}  // namespace saccade::server
