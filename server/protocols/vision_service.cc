#include "server/protocols/vision_service.h"

#include <utility>

#include "server/protocols/call_records.h"
#include "server/protocols/grpc_status.h"
#include "server/protocols/log_calls.h"
#include "server/protocols/peer.h"
#include "server/protocols/predict_reactor.h"
#include "server/protocols/restore_stream.h"
#include "server/protocols/vision_messages.h"
#include "server/protocols/vision_stream.h"
#include "server/protocols/vision_versions.h"

namespace saccade::server {
namespace {

constexpr char kPredict[] = "saccade.v1.Vision/Predict";

}  // namespace

grpc::ServerUnaryReactor* VisionService::Predict(grpc::CallbackServerContext* context,
                                                 const v1::PredictRequest* request,
                                                 v1::PredictResponse* response) {
  auto* reactor = new PredictReactor;
  const absl::Time arrival = clock_->Now();
  auto record = RecordOf(pipeline_->deps().watch, *context, kPredict, arrival);
  if (record != nullptr) record->AddReceived(static_cast<int64_t>(request->ByteSizeLong()));
  Run(*request,
      {.protocol = "grpc",
       .client = ClientOfPeer(context->peer()),
       .arrival = arrival,
       .deadline = DeadlineOf(*context),
       .cancellation = reactor->cancellation(),
       .record = record},
      response,
      [this, reactor, context, request, response, record](const absl::Status& status,
                                                          std::shared_ptr<const AnswerCharge> charge) {
        EndRecord(record.get(), status, [response] { return response->ByteSizeLong(); });
        LogFault(status,
                 {.method = kPredict,
                  .model = request->model(),
                  .id = request->request_id(),
                  .record = record.get()},
                 *context);
        reactor->Sends(context, options_.slow_readers, std::move(charge));
        reactor->Finish(ToGrpcStatus(status, options_.retry_jitter, context));
      });
  return reactor;
}

void VisionService::Run(const v1::PredictRequest& request, Caller caller, v1::PredictResponse* response,
                        Answered answered) {
  auto parsed = RequestOf(*catalog_, request);
  if (!parsed.ok()) {
    pipeline_->CountMalformed(caller.protocol, parsed.status().code());
    answered(parsed.status(), nullptr);
    return;
  }
  parsed->protocol = caller.protocol;
  parsed->client = std::move(caller.client);
  parsed->arrival = caller.arrival;
  parsed->deadline = caller.deadline;
  parsed->cancellation = std::move(caller.cancellation);
  parsed->encode = [this, &request, response](const Response& made) {
    return SetAnswer(made, request, options_.max_message_bytes, response);
  };
  if (caller.record != nullptr) caller.record->Describe(*parsed);
  parsed->record = std::move(caller.record);
  pipeline_->Predict(*std::move(parsed),
                     [response, answered = std::move(answered)](const absl::StatusOr<Response>& answer) {
                       if (answer.ok()) SetTimings(answer->timings, response);
                       answered(answer.status(), answer.ok() ? answer->charge : nullptr);
                     });
}

v1::ListModelsResponse VisionService::Models() const {
  v1::ListModelsResponse response;
  for (const ModelSnapshot& model : catalog_->List()) ToMessage(model, response.add_models());
  return response;
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* VisionService::PredictStream(
    grpc::CallbackServerContext* context) {
  return VisionStream::Start({.pipeline = pipeline_,
                              .catalog = catalog_,
                              .clock = clock_,
                              .slow_readers = options_.slow_readers,
                              .retry_jitter = options_.retry_jitter,
                              .max_message_bytes = options_.max_message_bytes,
                              .max_requests = options_.max_stream_requests},
                             context);
}

grpc::ServerBidiReactor<v1::RestoreRequest, v1::RestoreResponse>* VisionService::Restore(
    grpc::CallbackServerContext* context) {
  const absl::Time arrival = clock_->Now();
  return new RestoreStream(
      {.pipeline = pipeline_,
       .catalog = catalog_,
       .context = context,
       .retry_jitter = options_.retry_jitter,
       .arrival = arrival,
       .max_upload = options_.upload_timeout,
       .record = RecordOf(pipeline_->deps().watch, *context, "saccade.v1.Vision/Restore", arrival)});
}

grpc::ServerUnaryReactor* VisionService::ListModels(grpc::CallbackServerContext* context,
                                                    const v1::ListModelsRequest* /*request*/,
                                                    v1::ListModelsResponse* response) {
  *response = Models();
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
