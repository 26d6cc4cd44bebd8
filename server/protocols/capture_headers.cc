#include "server/protocols/capture_headers.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace saccade::server {
namespace {

constexpr absl::string_view kDescribing[] = {"accept", "content-type", "inference-header-content-length"};
constexpr absl::string_view kSecret[] = {"token", "key",       "secret", "password",
                                         "auth",  "signature", "sig",    "credential"};

bool IsSecret(absl::string_view name) {
  // An encoded name could hide any word.
  if (absl::StrContains(name, '%')) return true;
  const std::string lower = absl::AsciiStrToLower(name);
  for (const absl::string_view word : kSecret) {
    if (absl::StrContains(lower, word)) return true;
  }
  return false;
}

}  // namespace

CapturedCall::Headers CapturedHeaders(const HttpHeaders& headers) {
  CapturedCall::Headers captured;
  for (const absl::string_view name : kDescribing) {
    if (const auto value = FindHeader(headers, name)) captured.emplace_back(name, *value);
  }
  return captured;
}

std::string CapturedTarget(const HttpRequest& request) {
  std::string target = request.path;
  if (request.query.empty()) return target;
  char before = '?';
  for (const absl::string_view parameter : absl::StrSplit(request.query, '&')) {
    const size_t equals = parameter.find('=');
    const absl::string_view name = parameter.substr(0, equals);
    absl::StrAppend(&target, std::string(1, before),
                    IsSecret(name) ? absl::StrCat(name, "=REMOVED") : std::string(parameter));
    before = '&';
  }
  return target;
}

}  // namespace saccade::server
