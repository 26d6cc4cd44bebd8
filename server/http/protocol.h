// HTTP/1.1 over one connection: parsing, routing, answering. The library that parses stays behind it.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "server/http/connection.h"
#include "server/http/http_server.h"

namespace saccade::server {

// Thread-safe.
class Protocol {
 public:
  // INVALID_ARGUMENT for a route that cannot be served, or two of the same.
  static absl::StatusOr<std::unique_ptr<Protocol>> Create(const HttpServerOptions& options,
                                                          std::vector<HttpRoute> routes);
  ~Protocol();

  // Answers the request whose head has been read. `last`: tell the client that the connection closes. Returns
  // whether another request may follow.
  bool Answer(Connection& connection, bool last);

  // Answers without having read a request; the connection closes.
  static void Refuse(Connection& connection, const HttpResponse& response);

 private:
  class Engine;
  explicit Protocol(std::unique_ptr<Engine> engine);

  std::unique_ptr<Engine> engine_;
};

}  // namespace saccade::server
