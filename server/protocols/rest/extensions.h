// Triton's extensions over HTTP except inference and the model repository: configuration, statistics, log
// settings, shared memory, and the routes of unsupported ones.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "server/catalog/catalog.h"
#include "server/http/http_message.h"
#include "server/inference/inference.h"
#include "server/protocols/retry_jitter.h"
#include "server/shared_memory/shared_memory.h"

namespace saccade::server {

// Thread-safe. All routes run on the work pool.
class RestExtensions {
 public:
  // All must outlive this object.
  struct Deps {
    const Inference* inference;
    const Catalog* catalog;
    SharedMemory* shared_memory;
    RetryJitter* retry_jitter;
  };

  explicit RestExtensions(const Deps& deps) : deps_(deps) {}

  // This object must outlive the routes' server.
  std::vector<HttpRoute> Routes() const;

 private:
  using Answer = absl::StatusOr<HttpResponse>;

  std::vector<HttpRoute> ModelRoutes() const;
  std::vector<HttpRoute> LogAndTraceRoutes() const;
  std::vector<HttpRoute> SharedMemoryRoutes() const;

  Answer Config(const HttpRequest& request) const;
  Answer Statistics(const HttpRequest& request) const;
  Answer RegionStatus(const HttpRequest& request, RegionKind kind) const;
  Answer Register(const HttpRequest& request) const;
  Answer RegisterCuda(const HttpRequest& request) const;
  Answer Unregister(const HttpRequest& request, RegionKind kind) const;

  const Deps deps_;
};

}  // namespace saccade::server
