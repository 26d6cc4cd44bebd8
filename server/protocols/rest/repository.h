// Model control over HTTP: index, load and unload.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "server/catalog/catalog.h"
#include "server/http/http_message.h"
#include "server/inference/inference.h"
#include "server/protocols/retry_jitter.h"

namespace saccade::server {

// Thread-safe. Loads and unloads are answered when they are done; they continue if the client disconnects.
class RestRepository {
 public:
  // All must outlive this object.
  RestRepository(const Inference* inference, Catalog* catalog, RetryJitter* retry_jitter)
      : inference_(inference), catalog_(catalog), retry_jitter_(retry_jitter) {}

  // This object must outlive the routes' server and the loads that it began.
  std::vector<HttpRoute> Routes() const;

 private:
  absl::StatusOr<HttpResponse> Index(const HttpRequest& request) const;
  void Load(const HttpRequest& request, HttpReply reply) const;
  void Unload(const HttpRequest& request, HttpReply reply) const;
  // Sends the error, or an empty body, like Triton.
  void Reply(const absl::Status& status, const HttpReply& reply) const;

  const Inference* const inference_;
  Catalog* const catalog_;
  RetryJitter* const retry_jitter_;
};

}  // namespace saccade::server
