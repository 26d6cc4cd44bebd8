// The model control calls over HTTP: what the repositories hold, load, unload.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "server/http/http_server.h"
#include "server/pipeline/catalog.h"
#include "server/protocols/retry_jitter.h"

namespace saccade::server {

// Thread-safe. Loads and unloads block their thread, a connection's own, until they are done; a client that
// goes away does not end them.
class RestRepository {
 public:
  // Both must outlive it.
  RestRepository(Catalog* catalog, RetryJitter* retry_jitter)
      : catalog_(catalog), retry_jitter_(retry_jitter) {}

  // It must outlive the server that they are given to.
  std::vector<HttpRoute> Routes() const;

 private:
  absl::StatusOr<HttpResponse> Index(const HttpRequest& request) const;
  absl::StatusOr<HttpResponse> Load(const HttpRequest& request) const;
  absl::StatusOr<HttpResponse> Unload(const HttpRequest& request) const;

  Catalog* const catalog_;
  RetryJitter* const retry_jitter_;
};

}  // namespace saccade::server
