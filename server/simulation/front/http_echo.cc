#include "server/simulation/front/http_echo.h"

#include <cstdint>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "server/simulation/front/http1_request.h"

namespace saccade::server::simulation {
namespace {

constexpr int64_t kMaxSized = int64_t{300} << 10;
constexpr char kContentType[] = "application/octet-stream";

}  // namespace

std::vector<HttpRoute> HttpEcho::Routes() {
  const auto route = [this](const char* method, const char* path,
                            HttpResponse (HttpEcho::*respond)(const Request&)) {
    return HttpRoute{method, path, [this, respond](const Request& request, const HttpReply& reply) {
                       Handle(respond, request, reply);
                     }};
  };
  return {route("POST", "/echo", &HttpEcho::Echo), route("GET", "/sized/{bytes}", &HttpEcho::Sized)};
}

void HttpEcho::Handle(HttpResponse (HttpEcho::*respond)(const Request&), const Request& request,
                      const HttpReply& reply) {
  if (fault_ == Fault::kKeepsBodies) kept_.push_back(request);
  const auto answer = [this, respond, request, reply] {
    if (random_.Chance(0.1)) {
      ++failed_[request->client];
      return reply(HttpError(500, "as drawn"));
    }
    reply((this->*respond)(request));
  };
  // Handlers may answer before they return.
  if (random_.Chance(0.3)) return answer();
  later_(answer);
}

HttpResponse HttpEcho::Echo(const Request& request) {
  const std::string body(request->body);
  if (fault_ == Fault::kMixesAnswers) return {200, kContentType, std::exchange(last_, body)};
  HttpResponse response{200, kContentType};
  // A copy is charged to the ledger, the request's own bytes were.
  if (static_cast<int64_t>(body.size()) <= kMaxSmallBody || random_.Chance(0.2)) {
    response.body = body;
  } else {
    response.attached = {BytePieces({request->body.data(), request->body.size()}, request->body_owner)};
  }
  return response;
}

HttpResponse HttpEcho::Sized(const Request& request) {
  int64_t bytes = 0;
  const std::string& text = request->path_values.at("bytes");
  if (!absl::SimpleAtoi(text, &bytes) || bytes < 0 || bytes > kMaxSized)
    return HttpError(400, absl::StrCat("/sized/", text, " names no size; expected 0 to ", kMaxSized));
  return {200, kContentType, SizedText(bytes)};
}

}  // namespace saccade::server::simulation
