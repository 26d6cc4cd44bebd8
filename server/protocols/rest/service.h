// The Open Inference Protocol over HTTP, with Triton's binary data and its extensions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/catalog/catalog.h"
#include "server/engine/pipeline.h"
#include "server/http/http_message.h"
#include "server/inference/inference.h"
#include "server/net/work_pool.h"
#include "server/protocols/rest/extensions.h"
#include "server/protocols/rest/model_head.h"
#include "server/protocols/rest/repository.h"
#include "server/protocols/rest/request.h"
#include "server/protocols/retry_jitter.h"
#include "server/shared_memory/shared_memory.h"

namespace saccade::server {

// Thread-safe. No route blocks; those that may take long run on the server's work pool.
class RestService {
 public:
  struct Options {
    std::string server_name;
    std::string server_version;
    // Maximum size of an answer, and of the elements sent as JSON.
    int64_t max_message_bytes = 0;
    // Spreads the retry hints of rejections.
    RetryJitter* retry_jitter = nullptr;
    // Where long answers are signed and written as JSON; null does that on the thread that has computed them.
    WorkPool* pool = nullptr;
    // Whether the daemon is live and ready. Called on any thread.
    std::function<bool()> live;
    std::function<bool()> ready;
  };

  // All must outlive the service.
  struct Deps {
    Inference* inference;
    Pipeline* pipeline;
    Catalog* catalog;
    SharedMemory* shared_memory;
  };

  RestService(Options options, const Deps& deps)
      : options_(std::move(options)),
        deps_(deps),
        extensions_({.inference = deps.inference,
                     .catalog = deps.catalog,
                     .shared_memory = deps.shared_memory,
                     .retry_jitter = options_.retry_jitter}),
        repository_(deps.inference, deps.catalog, options_.retry_jitter),
        head_check_{deps.pipeline, deps.catalog, options_.retry_jitter} {}

  // The service must outlive the routes' server.
  std::vector<HttpRoute> Routes();

 private:
  struct InferCall;

  HttpResponse ServerMetadata() const;
  HttpResponse ModelMetadata(const HttpRequest& request) const;
  HttpResponse ModelReady(const HttpRequest& request) const;
  void Infer(std::shared_ptr<const HttpRequest> request, const HttpReply& reply) const;
  void Infer(const std::shared_ptr<InferCall>& call, absl::StatusOr<RestCall> read) const;

  absl::StatusOr<ModelInterface> Describe(const HttpRequest& request) const;
  absl::StatusOr<RestCall> Read(const HttpRequest& request) const;
  // Sends the answer and ends the call's record.
  void Answer(const std::shared_ptr<const InferCall>& call, absl::StatusOr<TensorAnswer> outcome) const;
  // Charges a large text before it is written, until it is sent. Errors as ByteLedger::Charge and
  // ToRestAnswer.
  absl::StatusOr<HttpResponse> MakeAnswer(const InferCall& call, TensorAnswer answer) const;
  HttpResponse Write(const InferCall& call, absl::StatusOr<TensorAnswer> outcome) const;

  const Options options_;
  const Deps deps_;
  const RestExtensions extensions_;
  const RestRepository repository_;
  const ModelHeadCheck head_check_;
};

}  // namespace saccade::server
