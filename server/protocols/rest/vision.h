// saccade.v1.Vision over HTTP: answers as JSON, requests as JSON or as a picture file.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/catalog/catalog.h"
#include "server/core/request.h"
#include "server/engine/pipeline.h"
#include "server/http/http_message.h"
#include "server/net/work_pool.h"
#include "server/protocols/rest/kept_answer.h"
#include "server/protocols/retry_jitter.h"

namespace saccade::server {

// Thread-safe; no route blocks, except for GET /v1/models, which runs on the front's pool.
class VisionRest {
 public:
  // All pointers must outlive this object and every call.
  struct Options {
    Pipeline* pipeline = nullptr;
    const Catalog* catalog = nullptr;
    // Spreads the retry hints of rejections.
    RetryJitter* retry_jitter = nullptr;
    // Where long answers are written as JSON; null writes them on the thread that has computed them.
    WorkPool* pool = nullptr;
    // Larger answers become errors that say so.
    int64_t max_message_bytes = 0;
  };

  explicit VisionRest(const Options& options) : options_(options) {}

  // This object must outlive the routes' server.
  std::vector<HttpRoute> Routes();

 private:
  struct Call;

  HttpResponse Models(const HttpRequest& request);
  void PredictJson(std::shared_ptr<const HttpRequest> request, const HttpReply& reply);
  void PredictFile(std::shared_ptr<const HttpRequest> request, const HttpReply& reply);

  std::shared_ptr<Call> Begin(std::shared_ptr<const HttpRequest> request, const char* route,
                              const HttpReply& reply) const;
  // Both read the message and its input.
  absl::StatusOr<Request> ReadJson(Call& call) const;
  absl::StatusOr<Request> ReadFile(Call& call) const;
  // Computes the request and sends its answer, or sends its error.
  void Predict(const std::shared_ptr<Call>& call, absl::StatusOr<Request> request);
  // Sends the answer, and ends the call's record.
  void Answer(const std::shared_ptr<const Call>& call, const absl::Status& status,
              std::shared_ptr<const AnswerCharge> charge) const;
  HttpResponse Write(const Call& call, const absl::Status& status) const;

  const Options options_;
  // The text of GET /v1/models.
  KeptAnswer models_;
};

}  // namespace saccade::server
