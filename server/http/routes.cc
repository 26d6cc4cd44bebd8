#include "server/http/routes.h"

#include <cstdint>
#include <exception>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace saccade::server {
namespace {

constexpr size_t kShownPathBytes = 200;

constexpr auto kKey = [](std::string* out, const auto& entry) { out->append(entry.first); };

// HEAD is answered as GET is; the body stays away below.
std::string HandledMethod(absl::string_view method) { return method == "HEAD" ? "GET" : std::string(method); }

}  // namespace

HttpResponse HttpError(int status, absl::string_view message) {
  const nlohmann::json body = {{"error", std::string(message)}};
  // What is not UTF-8 is replaced: a client may have sent it.
  return {status, "application/json", body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)};
}

absl::StatusOr<Routes> Routes::Create(std::vector<HttpRoute> routes, size_t max_body_bytes) {
  Routes made(max_body_bytes);
  for (HttpRoute& route : routes) {
    if ((route.method != "GET" && route.method != "POST") || route.path.empty() || route.path[0] != '/') {
      return absl::InvalidArgumentError(absl::StrCat("cannot serve the route ", route.method, " ", route.path,
                                                     "; expected GET or POST and a path that begins with /"));
    }
    if (!made.handlers_[route.path].emplace(route.method, std::move(route.handler)).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("the route ", route.method, " ", route.path, " stands twice"));
    }
  }
  return made;
}

std::optional<HttpResponse> Routes::Refusal(const RequestHead& head) const {
  const auto path = handlers_.find(head.path);
  if (path == handlers_.end()) {
    return HttpError(404, absl::StrCat("no such path: ", head.path.substr(0, kShownPathBytes), "; there are ",
                                       absl::StrJoin(handlers_, ", ", kKey)));
  }
  if (!path->second.contains(HandledMethod(head.method))) {
    return HttpError(405, absl::StrCat(head.path, " does not take ", head.method, "; use ",
                                       absl::StrJoin(path->second, " or ", kKey)));
  }
  return RefuseBody(head);
}

std::optional<HttpResponse> Routes::RefuseBody(const RequestHead& head) const {
  // Chunks would be read without a bound, and two lengths are how requests are smuggled past a proxy.
  if (head.has_transfer_encoding) {
    return HttpError(411,
                     "Transfer-Encoding is not taken; send the body in one piece with its Content-Length");
  }
  if (head.has_content_encoding) {
    return HttpError(415, "Content-Encoding is not taken; send the body as it is");
  }
  if (head.content_lengths.empty()) {
    if (head.method != "POST") return std::nullopt;
    return HttpError(411, "Content-Length is missing; send 0 for an empty body");
  }
  uint64_t length = 0;
  if (head.content_lengths.size() > 1 || !absl::SimpleAtoi(head.content_lengths[0], &length)) {
    return HttpError(400, "Content-Length must be one number");
  }
  if (head.method != "POST" && length > 0) return HttpError(400, absl::StrCat(head.method, " takes no body"));
  if (length > max_body_bytes_) {
    return HttpError(
        413, absl::StrCat("the body has ", length, " bytes, more than the ", max_body_bytes_, " taken"));
  }
  return std::nullopt;
}

HttpResponse Routes::Handle(const HttpRequest& request) const {
  try {
    return handlers_.at(std::string(request.path)).at(HandledMethod(request.method))(request);
  } catch (const std::exception&) {
    // Its text is about the daemon's inside, which is nobody's business here.
    return HttpError(500, "internal error");
  } catch (...) {
    return HttpError(500, "internal error");
  }
}

}  // namespace saccade::server
