#include "server/lifecycle/front/http_guard.h"

#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/security/scopes.h"

namespace saccade::server {
namespace {

constexpr char kRealm[] = "Bearer realm=\"saccade\"";

// The response defined by RFC 6750.
HttpResponse ChallengeFor(const absl::Status& status, bool sent, std::optional<Scope> needed) {
  const bool unknown = absl::IsUnauthenticated(status);
  HttpResponse response = HttpError(unknown ? 401 : 403, status.message());
  std::string challenge = kRealm;
  if (unknown && sent) absl::StrAppend(&challenge, ", error=\"invalid_token\"");
  if (!unknown) absl::StrAppend(&challenge, ", error=\"insufficient_scope\"");
  if (!unknown && needed) absl::StrAppend(&challenge, ", scope=\"", NameOf(*needed), "\"");
  response.headers = {{"WWW-Authenticate", std::move(challenge)}};
  return response;
}

}  // namespace

HttpGuard TokenGuard(const Tokens* tokens) {
  return [tokens](absl::string_view method, absl::string_view route,
                  const HttpHeaders& headers) -> std::optional<HttpResponse> {
    std::vector<absl::string_view> authorizations;
    for (const auto& [name, value] : headers) {
      if (absl::EqualsIgnoreCase(name, "Authorization")) authorizations.emplace_back(value);
    }
    const auto needed = ScopeOfRoute(method, route);
    const absl::Status allowed = tokens->Check(authorizations, needed);
    if (allowed.ok()) return std::nullopt;
    return ChallengeFor(allowed, !authorizations.empty(), needed);
  };
}

}  // namespace saccade::server
