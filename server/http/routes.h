// Finds the handler of a request.
#pragma once

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/http/http_message.h"

namespace saccade::server {

// Immutable, so thread-safe.
class Routes {
 public:
  struct Match {
    const HttpHandler* handler = nullptr;
    bool may_block = false;
    // As HttpRoute's.
    HttpBytesToParse bytes_to_parse = nullptr;
    // Points to an empty function if the route has none.
    const HttpHeadCheck* check_head = nullptr;
    // HttpRoute::path.
    absl::string_view route;
    // The decoded text for each {name} of the route.
    std::map<std::string, std::string> path_values;
  };

  // INVALID_ARGUMENT for a route that cannot be served, or two that are equal.
  static absl::StatusOr<Routes> Create(std::vector<HttpRoute> routes);

  // The handler, or the response to a request without one: an error, or the response to OPTIONS. `path` is
  // without the query, as it was sent. The match points into these routes.
  std::variant<Match, HttpResponse> Find(absl::string_view method, absl::string_view path) const;

 private:
  struct Action {
    HttpHandler handler;
    bool may_block = false;
    HttpBytesToParse bytes_to_parse = nullptr;
    HttpHeadCheck check_head = nullptr;
  };
  struct Path {
    std::string text;
    std::vector<std::string> segments;
    // By method.
    std::map<std::string, Action> actions;
  };

  Routes() = default;
  HttpResponse NoSuchPath(absl::string_view path) const;
  static HttpResponse NoSuchMethod(const Path& known, absl::string_view method, absl::string_view path);

  // In the order in which they are tried.
  std::vector<Path> paths_;
};

// HEAD is handled as GET; its response is sent without the body.
absl::string_view HandledMethod(absl::string_view method);

}  // namespace saccade::server
