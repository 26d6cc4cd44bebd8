// inference.GRPCInferenceService, the Open Inference Protocol, on gRPC's callback API.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "inference/grpc_service.grpc.pb.h"
#include "server/core/clock.h"
#include "server/core/request.h"
#include "server/pipeline/catalog.h"
#include "server/pipeline/pipeline.h"
#include "server/protocols/retry_jitter.h"

namespace saccade::server {

// Thread-safe; no call blocks.
class InferenceService final : public inference::GRPCInferenceService::WithRawCallbackMethod_ModelInfer<
                                   inference::GRPCInferenceService::CallbackService> {
 public:
  struct Options {
    std::string server_version;
    // Answers above it become errors that say so.
    int64_t max_message_bytes = 0;
    // Of the hints to those who are refused.
    RetryJitter* retry_jitter = nullptr;
    // Whether the daemon is ready as a whole; asked by ServerReady, from any thread.
    std::function<bool()> ready;
  };

  // Everything must outlive the service.
  InferenceService(Options options, Pipeline* pipeline, const Catalog* catalog, Clock* clock)
      : options_(std::move(options)), pipeline_(pipeline), catalog_(catalog), clock_(clock) {}

  grpc::ServerUnaryReactor* ServerLive(grpc::CallbackServerContext* context,
                                       const inference::ServerLiveRequest* request,
                                       inference::ServerLiveResponse* response) override;
  grpc::ServerUnaryReactor* ServerReady(grpc::CallbackServerContext* context,
                                        const inference::ServerReadyRequest* request,
                                        inference::ServerReadyResponse* response) override;
  // As Triton does: an unknown model is not an error here, it is not ready.
  grpc::ServerUnaryReactor* ModelReady(grpc::CallbackServerContext* context,
                                       const inference::ModelReadyRequest* request,
                                       inference::ModelReadyResponse* response) override;
  grpc::ServerUnaryReactor* ServerMetadata(grpc::CallbackServerContext* context,
                                           const inference::ServerMetadataRequest* request,
                                           inference::ServerMetadataResponse* response) override;
  grpc::ServerUnaryReactor* ModelMetadata(grpc::CallbackServerContext* context,
                                          const inference::ModelMetadataRequest* request,
                                          inference::ModelMetadataResponse* response) override;
  // Its messages are read and written here, so that tensors are not copied (docs/decisions/0017).
  grpc::ServerUnaryReactor* ModelInfer(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                       grpc::ByteBuffer* response) override;

 private:
  const Options options_;
  Pipeline* const pipeline_;
  const Catalog* const catalog_;
  Clock* const clock_;
};

}  // namespace saccade::server
