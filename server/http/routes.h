// Which handler answers a request, and which requests are refused before their body is read.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "server/http/http_server.h"
#include "server/http/request_parser.h"

namespace saccade::server {

// Immutable, so thread-safe.
class Routes {
 public:
  struct Match {
    const HttpHandler* handler = nullptr;
    // As the HttpRoute has it.
    absl::string_view route;
    std::map<std::string, std::string> path_values;
  };

  // INVALID_ARGUMENT for a route that cannot be served, or two of the same.
  static absl::StatusOr<Routes> Create(std::vector<HttpRoute> routes);

  // The handler, or what answers instead of one: errors, and OPTIONS. The match points into these routes.
  std::variant<Match, HttpResponse> Find(const RequestHead& head) const;

 private:
  struct Path {
    std::string text;
    std::vector<std::string> segments;
    // By method.
    std::map<std::string, HttpHandler> handlers;
  };

  Routes() = default;
  HttpResponse NoSuchPath(absl::string_view path) const;

  // In the order in which they are tried.
  std::vector<Path> paths_;
};

// HEAD is answered as GET is; the body stays away later.
std::string HandledMethod(const std::string& method);

// Runs the handler; an exception becomes a 500.
HttpResponse Handle(const HttpHandler& handler, const HttpRequest& request);

}  // namespace saccade::server
