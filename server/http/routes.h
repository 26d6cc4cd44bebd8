// Which handler answers a request, and which requests are refused before their body is read.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/http/http_server.h"

namespace saccade::server {

// What of a request's head decides about it.
struct RequestHead {
  std::string method;
  std::string path;
  // Every value, as sent.
  std::vector<std::string> content_lengths;
  bool has_transfer_encoding = false;
  bool has_content_encoding = false;
};

// Immutable, so thread-safe.
class Routes {
 public:
  static absl::StatusOr<Routes> Create(std::vector<HttpRoute> routes, size_t max_body_bytes);

  // The error to answer with, if the request is not to be handled.
  std::optional<HttpResponse> Refusal(const RequestHead& head) const;

  // Runs the handler. REQUIRES: the request was not refused.
  HttpResponse Handle(const HttpRequest& request) const;

 private:
  explicit Routes(size_t max_body_bytes) : max_body_bytes_(max_body_bytes) {}

  std::optional<HttpResponse> RefuseBody(const RequestHead& head) const;

  size_t max_body_bytes_;
  // By path, then by method.
  std::map<std::string, std::map<std::string, HttpHandler>> handlers_;
};

}  // namespace saccade::server
