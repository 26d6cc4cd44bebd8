#include "server/protocols/rest_media.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/core/errors.h"

namespace saccade::server {
namespace {

constexpr absl::string_view kForm = "application/x-www-form-urlencoded";

// Every browser that matters sends one of them with a POST.
bool IsBrowser(const HttpRequest& request) {
  return request.Header("Origin").has_value() || request.Header("Sec-Fetch-Site").has_value();
}

}  // namespace

std::string MediaTypeOf(const HttpRequest& request) {
  absl::string_view type = request.Header("Content-Type").value_or("");
  type = absl::StripAsciiWhitespace(type.substr(0, type.find(';')));
  return absl::AsciiStrToLower(type);
}

std::optional<HttpResponse> CheckMediaType(const HttpRequest& request,
                                           absl::Span<const absl::string_view> types) {
  const std::string type = MediaTypeOf(request);
  if (type.empty() || std::find(types.begin(), types.end(), type) != types.end()) return std::nullopt;
  if (type == kForm && !IsBrowser(request)) return std::nullopt;
  return HttpError(415, absl::StrCat("Content-Type is ", Shown(type), "; expected ",
                                     absl::StrJoin(types, ", "), ", or none"));
}

HttpHandler TakingJsonOrBinary(HttpHandler handler) {
  return [handler = std::move(handler)](std::shared_ptr<const HttpRequest> request, HttpReply reply) {
    static constexpr std::array<absl::string_view, 2> kTypes = {"application/json",
                                                                "application/octet-stream"};
    if (auto refusal = CheckMediaType(*request, kTypes)) return reply(*std::move(refusal));
    handler(std::move(request), std::move(reply));
  };
}

}  // namespace saccade::server
