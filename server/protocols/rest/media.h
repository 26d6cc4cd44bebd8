// Which Content-Types a POST route takes.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/http/http_message.h"

namespace saccade::server {

// The types of files that are taken as a request's input. What a file is is seen from its bytes.
inline constexpr std::array<absl::string_view, 11> kFileTypes = {
    "image/jpeg",       "image/png",       "image/webp",
    "image/bmp",        "image/tiff",      "application/octet-stream",
    "video/mp4",        "video/quicktime", "video/webm",
    "video/x-matroska", "video/x-msvideo"};

// The media type of the request's Content-Type: lower case, without parameters. Empty if the request has
// none.
std::string MediaTypeOf(const HttpRequest& request);

// The 415 for a request whose Content-Type is not one of `types`; nullopt if it is. A request without
// Content-Type is accepted. So is application/x-www-form-urlencoded, which curl and Triton's C++ client send
// with any body, but not from a browser: pages of other sites can send forms without asking first.
std::optional<HttpResponse> CheckMediaType(const HttpRequest& request,
                                           absl::Span<const absl::string_view> types);

// The error for a body that should be JSON and begins like a picture or a video: it says where files go. OK
// for any other body.
absl::Status CheckIsNoFile(absl::string_view body);

// The error for a body that begins like a picture or a video and has none of the bytes that `curl -d @FILE`
// removes from a file; every whole file has some. OK for any other body. Looks at the first 256 KiB.
absl::Status CheckIsWholeFile(const HttpRequest& request);

// `route` for requests that CheckMediaType() accepts, for JSON or binary data. Also checks them by their
// heads.
HttpRoute TakingJsonOrBinary(HttpRoute route);

}  // namespace saccade::server
