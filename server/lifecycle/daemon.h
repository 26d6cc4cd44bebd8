// The daemon's life: open the ports, load, serve, drain, end.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/lifecycle/flags.h"
#include "server/lifecycle/grpc_server.h"
#include "server/lifecycle/readiness.h"

namespace saccade::server {

class Admission;
class Catalog;
class Certificates;
class DecodePool;
struct EnsembleRunner;
class HttpServer;
struct HttpRoute;
struct HttpServerOptions;
class Inference;
class InferenceService;
class Metrics;
class Pipeline;
class ResponseCache;
class RestService;
class RetryJitter;
class SharedMemory;
class SlowReaders;
class Telling;
class Tokens;
class VisionRest;
class VisionService;

// Used by the main thread alone.
class Daemon {
 public:
  // Opens every port and begins to load; returns before the models are ready. The error is fit to be printed.
  static absl::StatusOr<std::unique_ptr<Daemon>> Start(const Flags& flags);
  ~Daemon();

  // Serves until SIGTERM or SIGINT, then drains: NOT_SERVING first, the lame-duck delay, no new requests,
  // what was accepted finished. OK if nothing was lost; DEADLINE_EXCEEDED if the drain's time was over first,
  // and then forward passes may still be running; the reason if a model failed to load under --exit-on-error.
  absl::Status Run();

 private:
  explicit Daemon(const Flags& flags);

  absl::Status OpenSecrets();
  void LookAtSecrets();
  absl::Status OpenRooms();
  // What certificates and tokens there are.
  void Protect(HttpServerOptions& options);
  absl::Status OpenPorts();
  std::vector<HttpRoute> HttpRoutes();
  std::vector<HttpRoute> MetricsRoutes();
  void StartLoading();
  absl::Status AwaitEnd();
  absl::Status Drain();
  void Stop();

  const Flags flags_;
  Readiness readiness_;
  // In the order of their construction; each may point to those before it.
  // Null without TLS, and if nobody needs a token.
  std::unique_ptr<Certificates> certificates_;
  std::unique_ptr<Tokens> tokens_;
  std::unique_ptr<Metrics> metrics_;
  std::unique_ptr<Telling> telling_;
  std::unique_ptr<Admission> admission_;
  // Null if no answers are kept.
  std::unique_ptr<ResponseCache> response_cache_;
  std::unique_ptr<EnsembleRunner> ensembles_;
  std::unique_ptr<Catalog> catalog_;
  std::unique_ptr<DecodePool> decode_pool_;
  std::unique_ptr<Pipeline> pipeline_;
  std::unique_ptr<RetryJitter> retry_jitter_;
  std::unique_ptr<SlowReaders> slow_readers_;
  std::unique_ptr<VisionService> vision_;
  std::unique_ptr<SharedMemory> shared_memory_;
  std::unique_ptr<Inference> inference_;
  std::unique_ptr<InferenceService> inference_service_;
  std::unique_ptr<RestService> rest_;
  std::unique_ptr<VisionRest> vision_rest_;
  std::unique_ptr<GrpcServer> grpc_;
  std::unique_ptr<HttpServer> http_;
  std::unique_ptr<HttpServer> metrics_http_;
  // Whether everything was tried that is to be there at start. The catalog's thread's.
  bool loaded_ = false;
  std::atomic<bool> loading_failed_{false};
};

}  // namespace saccade::server
