// saccade.v1.Vision over HTTP, as JSON.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "server/http/http_server.h"
#include "server/pipeline/pipeline.h"
#include "server/protocols/retry_jitter.h"
#include "server/protocols/vision_service.h"

namespace saccade::server {

// Thread-safe. Predictions block their thread, a connection's own, until they are answered.
class VisionRest {
 public:
  // Everything must outlive this.
  VisionRest(VisionService* vision, Pipeline* pipeline, RetryJitter* retry_jitter)
      : vision_(vision), pipeline_(pipeline), retry_jitter_(retry_jitter) {}

  // This must outlive the server that they are given to.
  std::vector<HttpRoute> Routes();

 private:
  HttpResponse Models() const;
  HttpResponse Predict(const HttpRequest& request) const;
  absl::StatusOr<HttpResponse> TryPredict(const HttpRequest& request, absl::Time arrival,
                                          const std::shared_ptr<CallRecord>& record) const;

  VisionService* const vision_;
  Pipeline* const pipeline_;
  RetryJitter* const retry_jitter_;
};

}  // namespace saccade::server
