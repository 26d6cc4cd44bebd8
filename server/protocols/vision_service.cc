#include "server/protocols/vision_service.h"

#include <utility>

#include "server/protocols/grpc_status.h"
#include "server/protocols/peer.h"
#include "server/protocols/predict_reactor.h"
#include "server/protocols/restore_stream.h"
#include "server/protocols/vision_messages.h"
#include "server/protocols/vision_stream.h"
#include "server/protocols/vision_versions.h"

namespace saccade::server {

grpc::ServerUnaryReactor* VisionService::Predict(grpc::CallbackServerContext* context,
                                                 const v1::PredictRequest* request,
                                                 v1::PredictResponse* response) {
  const absl::Time arrival = clock_->Now();
  auto parsed = RequestOf(*catalog_, *request);
  if (!parsed.ok()) {
    pipeline_->CountMalformed("grpc", parsed.status().code());
    return FinishNow(context, ToGrpcStatus(parsed.status()));
  }
  auto* reactor = new PredictReactor;
  parsed->client = ClientOfPeer(context->peer());
  parsed->arrival = arrival;
  parsed->deadline = DeadlineOf(*context);
  parsed->cancellation = reactor->cancellation();
  pipeline_->Predict(*std::move(parsed), [this, reactor, context, request,
                                          response](const absl::StatusOr<Response>& answer) {
    if (answer.ok()) reactor->Sends(context, options_.slow_readers, answer->room);
    reactor->Finish(ToGrpcStatus(SetAnswer(answer, *request, options_.max_message_bytes, response),
                                 options_.retry_jitter, context));
  });
  return reactor;
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* VisionService::PredictStream(
    grpc::CallbackServerContext* context) {
  return VisionStream::Start({.pipeline = pipeline_,
                              .catalog = catalog_,
                              .clock = clock_,
                              .slow_readers = options_.slow_readers,
                              .retry_jitter = options_.retry_jitter,
                              .max_message_bytes = options_.max_message_bytes,
                              .most_requests = options_.most_stream_requests},
                             context);
}

grpc::ServerBidiReactor<v1::RestoreRequest, v1::RestoreResponse>* VisionService::Restore(
    grpc::CallbackServerContext* context) {
  return new RestoreStream({.pipeline = pipeline_,
                            .context = context,
                            .retry_jitter = options_.retry_jitter,
                            .arrival = clock_->Now(),
                            .most_upload = options_.upload_timeout});
}

grpc::ServerUnaryReactor* VisionService::ListModels(grpc::CallbackServerContext* context,
                                                    const v1::ListModelsRequest* /*request*/,
                                                    v1::ListModelsResponse* response) {
  for (const ModelSnapshot& model : catalog_->List()) ToMessage(model, response->add_models());
  return FinishNow(context, grpc::Status::OK);
}

grpc::ServerUnaryReactor* VisionService::GetModel(grpc::CallbackServerContext* context,
                                                  const v1::GetModelRequest* request, v1::Model* response) {
  const auto version = VersionOf(*catalog_, *request);
  if (!version.ok()) return FinishNow(context, ToGrpcStatus(version.status()));
  auto model = catalog_->Describe(request->model(), *version);
  if (model.ok()) ToMessage(*model, response);
  return FinishNow(context, ToGrpcStatus(model.status()));
}

}  // namespace saccade::server
