// saccade.v1.Vision over HTTP, as JSON.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "server/engine/pipeline.h"
#include "server/http/http_server.h"
#include "server/protocols/retry_jitter.h"
#include "server/protocols/vision_service.h"

namespace saccade::server {

// Thread-safe. Predictions block the connection's thread until they are answered.
class VisionRest {
 public:
  // All arguments must outlive this object.
  VisionRest(VisionService* vision, Pipeline* pipeline, RetryJitter* retry_jitter)
      : vision_(vision), pipeline_(pipeline), retry_jitter_(retry_jitter) {}

  // This object must outlive the routes' server.
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
