// The Open Inference Protocol over HTTP, with Triton's binary data and its extensions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/core/clock.h"
#include "server/http/http_server.h"
#include "server/inference/inference.h"
#include "server/pipeline/catalog.h"
#include "server/pipeline/pipeline.h"
#include "server/protocols/rest_extensions.h"
#include "server/protocols/rest_repository.h"
#include "server/protocols/rest_request.h"
#include "server/protocols/retry_jitter.h"
#include "server/shared_memory/shared_memory.h"

namespace saccade::server {

// Thread-safe. Inferences block their thread, a connection's own, until they are answered.
class RestService {
 public:
  struct Options {
    std::string server_version;
    // Answers above it become errors that say so; elements that come as JSON take no more either.
    int64_t max_message_bytes = 0;
    // Of the hints to those who are refused.
    RetryJitter* retry_jitter = nullptr;
    // Whether the daemon as a whole is; asked from any thread.
    std::function<bool()> live;
    std::function<bool()> ready;
  };

  // Everything must outlive the service.
  struct Rooms {
    Inference* inference;
    Pipeline* pipeline;
    Catalog* catalog;
    SharedMemory* shared_memory;
    Clock* clock;
  };

  RestService(Options options, const Rooms& rooms)
      : options_(std::move(options)),
        rooms_(rooms),
        extensions_({.inference = rooms.inference,
                     .catalog = rooms.catalog,
                     .shared_memory = rooms.shared_memory,
                     .retry_jitter = options_.retry_jitter}),
        repository_(rooms.catalog, options_.retry_jitter) {}

  // The service must outlive the server that they are given to.
  std::vector<HttpRoute> Routes();

 private:
  HttpResponse ServerMetadata() const;
  HttpResponse ModelMetadata(const HttpRequest& request) const;
  HttpResponse ModelReady(const HttpRequest& request) const;
  HttpResponse Infer(const HttpRequest& request) const;

  absl::StatusOr<ModelInterface> Describe(const HttpRequest& request) const;
  absl::StatusOr<RestCall> Read(const HttpRequest& request, absl::Time arrival) const;
  // Cancels the call if the client goes away.
  absl::StatusOr<TensorAnswer> Await(TensorCall call, HttpClient& client) const;
  absl::StatusOr<HttpResponse> TryInfer(const HttpRequest& request, absl::Time arrival,
                                        const std::shared_ptr<CallRecord>& record) const;

  const Options options_;
  const Rooms rooms_;
  const RestExtensions extensions_;
  const RestRepository repository_;
};

}  // namespace saccade::server
