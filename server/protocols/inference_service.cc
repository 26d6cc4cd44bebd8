#include "server/protocols/inference_service.h"

#include <memory>
#include <utility>

#include "server/protocols/grpc_status.h"
#include "server/protocols/inference_messages.h"
#include "server/protocols/inference_outputs.h"
#include "server/protocols/inference_request.h"
#include "server/protocols/peer.h"
#include "server/protocols/predict_reactor.h"

namespace saccade::server {
namespace {

absl::StatusOr<ModelSnapshot> ReadySnapshot(const Catalog& catalog, const std::string& name,
                                            const std::string& version) {
  auto number = ParseVersion(version);
  if (!number.ok()) return number.status();
  auto model = catalog.FindReady(name, *number);
  if (!model.ok()) return model.status();
  return (*model)->Snapshot();
}

// Has the request, which the pipeline points into until it answers.
class InferenceCall final : public PredictReactor {
 public:
  explicit InferenceCall(InferenceRequest request) : request_(std::move(request)) {}
  const InferenceRequest& request() const { return request_; }

 private:
  const InferenceRequest request_;
};

}  // namespace

grpc::ServerUnaryReactor* InferenceService::ServerLive(grpc::CallbackServerContext* context,
                                                       const inference::ServerLiveRequest* /*request*/,
                                                       inference::ServerLiveResponse* response) {
  response->set_live(true);
  return FinishNow(context, grpc::Status::OK);
}

grpc::ServerUnaryReactor* InferenceService::ServerReady(grpc::CallbackServerContext* context,
                                                        const inference::ServerReadyRequest* /*request*/,
                                                        inference::ServerReadyResponse* response) {
  response->set_ready(options_.ready());
  return FinishNow(context, grpc::Status::OK);
}

grpc::ServerUnaryReactor* InferenceService::ModelReady(grpc::CallbackServerContext* context,
                                                       const inference::ModelReadyRequest* request,
                                                       inference::ModelReadyResponse* response) {
  auto version = ParseVersion(request->version());
  if (!version.ok()) return FinishNow(context, ToGrpcStatus(version.status()));
  response->set_ready(catalog_->FindReady(request->name(), *version).ok());
  return FinishNow(context, grpc::Status::OK);
}

grpc::ServerUnaryReactor* InferenceService::ServerMetadata(
    grpc::CallbackServerContext* context, const inference::ServerMetadataRequest* /*request*/,
    inference::ServerMetadataResponse* response) {
  // No extension is listed before it works.
  response->set_name("saccade");
  response->set_version(options_.server_version);
  return FinishNow(context, grpc::Status::OK);
}

grpc::ServerUnaryReactor* InferenceService::ModelMetadata(grpc::CallbackServerContext* context,
                                                          const inference::ModelMetadataRequest* request,
                                                          inference::ModelMetadataResponse* response) {
  auto model = ReadySnapshot(*catalog_, request->name(), request->version());
  if (model.ok()) ToMessage(*model, response);
  return FinishNow(context, ToGrpcStatus(model.status()));
}

grpc::ServerUnaryReactor* InferenceService::ModelInfer(grpc::CallbackServerContext* context,
                                                       const grpc::ByteBuffer* request,
                                                       grpc::ByteBuffer* response) {
  const absl::Time arrival = clock_->Now();
  auto received = ReadInferenceRequest(*request);
  if (!received.ok()) {
    pipeline_->CountMalformed("oip", received.status().code());
    return FinishNow(context, ToGrpcStatus(received.status()));
  }
  auto reactor = std::make_unique<InferenceCall>(*std::move(received));
  auto parsed = FromMessage(reactor->request(), arrival, DeadlineOf(*context));
  if (!parsed.ok()) {
    pipeline_->CountMalformed("oip", parsed.status().code());
    return FinishNow(context, ToGrpcStatus(parsed.status()));
  }
  parsed->client = ClientOfPeer(context->peer());
  parsed->cancellation = reactor->cancellation();
  InferenceCall* const call = reactor.release();
  pipeline_->Predict(*std::move(parsed), [this, call, context, response](absl::StatusOr<Response> answer) {
    const absl::Status status = Answer(std::move(answer), call->request().fields, response);
    call->Finish(ToGrpcStatus(status, options_.retry_jitter, context));
  });
  return call;
}

absl::Status InferenceService::Answer(absl::StatusOr<Response> answer,
                                      const inference::ModelInferRequest& request,
                                      grpc::ByteBuffer* response) const {
  if (!answer.ok()) return answer.status();
  auto made = ToAnswer(std::make_shared<const Response>(*std::move(answer)), request);
  if (!made.ok()) return made.status();
  if (absl::Status fits = CheckSize(*made, options_.max_message_bytes); !fits.ok()) return fits;
  *response = ToBytes(*std::move(made));
  return absl::OkStatus();
}

}  // namespace saccade::server
