// Model control over HTTP: index, load and unload.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "server/catalog/catalog.h"
#include "server/http/http_server.h"
#include "server/protocols/retry_jitter.h"

namespace saccade::server {

// Thread-safe. Loads and unloads block the connection's thread until they are done; they continue if the
// client disconnects.
class RestRepository {
 public:
  // Both must outlive this object.
  RestRepository(Catalog* catalog, RetryJitter* retry_jitter)
      : catalog_(catalog), retry_jitter_(retry_jitter) {}

  // This object must outlive the routes' server.
  std::vector<HttpRoute> Routes() const;

 private:
  absl::StatusOr<HttpResponse> Index(const HttpRequest& request) const;
  absl::StatusOr<HttpResponse> Load(const HttpRequest& request) const;
  absl::StatusOr<HttpResponse> Unload(const HttpRequest& request) const;

  Catalog* const catalog_;
  RetryJitter* const retry_jitter_;
};

}  // namespace saccade::server
