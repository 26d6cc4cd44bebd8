// HTTP/1.1 over one connection: one request read, routed, handled and answered.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "server/http/connection.h"
#include "server/http/http_server.h"
#include "server/http/request_body.h"
#include "server/http/routes.h"

namespace saccade::server {

// Thread-safe.
class Protocol {
 public:
  // `options` must outlive it. INVALID_ARGUMENT for a route that cannot be served, or two of the same.
  static absl::StatusOr<std::unique_ptr<Protocol>> Create(const HttpServerOptions& options,
                                                          std::vector<HttpRoute> routes);

  // Answers the request whose head has been read. `last`: tell the client that the connection closes. Returns
  // whether another request may follow.
  bool Answer(Connection& connection, bool last);

  // Answers without having read a request; the connection closes.
  static void Refuse(Connection& connection, const HttpResponse& response);

 private:
  Protocol(const HttpServerOptions& options, Routes routes)
      : max_body_bytes_(options.max_body_bytes),
        guard_(options.guard),
        routes_(std::move(routes)),
        room_(std::make_shared<BodyRoom>(options.max_bodies_bytes)) {}

  // What can be said against the request before its body is read.
  std::optional<HttpResponse> RefuseBody(const RequestHead& head) const;
  // The body first; an error leaves it unread.
  HttpResponse ReadAndHandle(Connection& connection, RequestParser& parser, Routes::Match match, bool* whole);

  const size_t max_body_bytes_;
  const HttpGuard guard_;
  const Routes routes_;
  const std::shared_ptr<BodyRoom> room_;
};

}  // namespace saccade::server
