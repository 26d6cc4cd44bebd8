#include "server/protocols/rest/media.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/core/errors.h"

namespace saccade::server {
namespace {

constexpr absl::string_view kForm = "application/x-www-form-urlencoded";
constexpr absl::string_view kMultipart = "multipart/form-data";

constexpr absl::string_view kWhereFilesGo =
    "POST a picture or video as it is to /v1/predict/MODEL, or here with the header "
    "Inference-Header-Content-Length: 0";

// What curl -d removes from the file that it sends.
constexpr absl::string_view kRemovedByCurl("\0\r\n", 3);

// Every whole file has one of them this early, and searching more would keep a network thread.
constexpr size_t kSearched = size_t{256} << 10;

// JPEG, PNG, WebP and AVI, TIFF of both byte orders, Matroska.
constexpr std::array<absl::string_view, 6> kBeginnings = {
    "\xFF\xD8\xFF",    "\x89PNG", "RIFF", absl::string_view("II*\0", 4), absl::string_view("MM\0*", 4),
    "\x1A\x45\xDF\xA3"};
constexpr absl::string_view kMp4Mark = "ftyp";

bool BeginsLikeFile(absl::string_view body) {
  // Four bytes of size come before MP4's mark.
  return std::any_of(kBeginnings.begin(), kBeginnings.end(),
                     [&](absl::string_view mark) { return absl::StartsWith(body, mark); }) ||
         body.substr(std::min<size_t>(body.size(), 4), kMp4Mark.size()) == kMp4Mark;
}

// Whether the body begins like a file from which curl -d has removed bytes.
bool BeginsLikeStrippedFile(absl::string_view body) {
  const auto is_beginning = [&](absl::string_view mark) {
    std::string left(mark);
    left.erase(std::remove_if(left.begin(), left.end(),
                              [](char byte) { return absl::StrContains(kRemovedByCurl, byte); }),
               left.end());
    return absl::StartsWith(body, left);
  };
  return std::any_of(kBeginnings.begin(), kBeginnings.end(), is_beginning) || absl::StartsWith(body, "BM") ||
         absl::StrContains(body.substr(0, 4 + kMp4Mark.size()), kMp4Mark);
}

bool IsFileType(absl::string_view type) {
  return absl::StartsWith(type, "image/") || absl::StartsWith(type, "video/");
}

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
                                     absl::StrJoin(types, ", "), ", or none",
                                     type == kMultipart ? "; send the file itself as the body, as curl "
                                                          "--data-binary @FILE does, and not as a form"
                                                        : ""));
}

namespace {

std::optional<HttpResponse> CheckJsonOrBinary(const HttpRequest& request) {
  static constexpr std::array<absl::string_view, 2> kTypes = {"application/json", "application/octet-stream"};
  auto refusal = CheckMediaType(request, kTypes);
  const std::string type = MediaTypeOf(request);
  if (!refusal || !IsFileType(type)) return refusal;
  return HttpError(415, absl::StrCat("Content-Type is ", Shown(type), "; expected application/json; ",
                                     kWhereFilesGo, " and Content-Type: application/octet-stream"));
}

}  // namespace

absl::Status CheckIsNoFile(absl::string_view body) {
  if (!BeginsLikeFile(body)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the request is a picture or video; expected JSON; ", kWhereFilesGo));
}

absl::Status CheckIsWholeFile(const HttpRequest& request) {
  const absl::string_view body = request.body.substr(0, kSearched);
  const bool stripped =
      BeginsLikeStrippedFile(body) && std::none_of(kRemovedByCurl.begin(), kRemovedByCurl.end(),
                                                   [&](char byte) { return absl::StrContains(body, byte); });
  if (!stripped) return absl::OkStatus();
  const std::string type = MediaTypeOf(request);
  return absl::InvalidArgumentError(absl::StrCat(
      "the body is not the whole file: it has neither zero bytes nor line breaks, which curl -d removes, and "
      "Content-Type is ",
      type.empty() ? "not set" : Shown(type),
      "; expected the file's bytes as they are; send them with curl --data-binary @FILE"));
}

HttpRoute TakingJsonOrBinary(HttpRoute route) {
  route.handler = [handler = std::move(route.handler)](std::shared_ptr<const HttpRequest> request,
                                                       HttpReply reply) {
    if (auto refusal = CheckJsonOrBinary(*request)) return reply(*std::move(refusal));
    handler(std::move(request), std::move(reply));
  };
  route.check_head = [more = std::move(route.check_head)](const HttpRequest& request) {
    auto refusal = CheckJsonOrBinary(request);
    return refusal || more == nullptr ? refusal : more(request);
  };
  return route;
}

}  // namespace saccade::server
