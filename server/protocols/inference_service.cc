#include "server/protocols/inference_service.h"

#include <utility>

#include "server/protocols/grpc_status.h"
#include "server/protocols/inference_messages.h"
#include "server/protocols/inference_outputs.h"
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
                                                       const inference::ModelInferRequest* request,
                                                       inference::ModelInferResponse* response) {
  auto parsed = FromMessage(*request, clock_->Now(), DeadlineOf(*context));
  if (!parsed.ok()) {
    pipeline_->CountMalformed("oip", parsed.status().code());
    return FinishNow(context, ToGrpcStatus(parsed.status()));
  }
  auto* reactor = new PredictReactor;
  parsed->cancellation = reactor->cancellation();
  pipeline_->Predict(*std::move(parsed),
                     [this, reactor, request, response](const absl::StatusOr<Response>& answer) {
                       reactor->Finish(ToGrpcStatus(Answer(answer, *request, response)));
                     });
  return reactor;
}

absl::Status InferenceService::Answer(const absl::StatusOr<Response>& answer,
                                      const inference::ModelInferRequest& request,
                                      inference::ModelInferResponse* response) const {
  if (!answer.ok()) return answer.status();
  if (absl::Status status = ToMessage(*answer, request, response); !status.ok()) return status;
  return CheckSize(*response, options_.max_message_bytes);
}

}  // namespace saccade::server
