#include "server/protocols/vision/service.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "saccade/v1/vision.pb.h"
#include "server/grpc/serialize_message.h"
#include "server/protocols/call_scope.h"
#include "server/protocols/grpc_status.h"
#include "server/protocols/input_method.h"
#include "server/protocols/message_methods.h"
#include "server/protocols/vision/attest.h"
#include "server/protocols/vision/crops.h"
#include "server/protocols/vision/messages.h"
#include "server/protocols/vision/restore_stream.h"
#include "server/protocols/vision/stream.h"
#include "server/protocols/vision/timing.h"
#include "server/protocols/vision/versions.h"

namespace saccade::server {
namespace {

constexpr char kPredict[] = "saccade.v1.Vision/Predict";

std::string PathOf(const char* method) { return absl::StrCat("/saccade.v1.Vision/", method); }

}  // namespace

// The request's pictures point into the message.
struct VisionService::Prediction {
  std::shared_ptr<UnaryCall> call;
  // Refers to the call.
  CallScope scope;
  // Its owner holds what the front charged for the message; `parse_charge` is for what parsing took beyond
  // that.
  BytePieces received;
  ByteCharge parse_charge = {};
  v1::PredictRequest message = {};
  v1::PredictResponse answer = {};

  void Fail(const absl::Status& status, RetryJitter* jitter) const {
    scope.End(status, received, BytePieces(), message.model(), message.request_id());
    call->Fail(ToCallEnd(status, jitter));
  }

  void Answer(std::shared_ptr<const AnswerCharge> charge) const {
    BytePieces bytes = SerializeMessage(answer, std::move(charge));
    scope.End(absl::OkStatus(), received, bytes, message.model(), message.request_id());
    call->Respond(std::move(bytes));
  }
};

std::vector<CallMethod> VisionService::Methods() {
  using v1::GetModelRequest, v1::ListModelsRequest, v1::ListModelsResponse;
  return {
      InputMethod(
          PathOf("Predict"), "saccade.v1.PredictRequest", options_.pool,
          [this](std::shared_ptr<UnaryCall> call, BytePieces received) {
            Predict(std::move(call), std::move(received));
          },
          [this](absl::StatusCode code) { pipeline_->CountMalformed("grpc", code); }, options_.retry_jitter),
      {.path = PathOf("PredictStream"), .make = [this] { return PredictStream(); }, .charges_answers = true},
      {.path = PathOf("Restore"), .make = [this] { return Restore(); }, .charges_answers = true},
      AnsweredMethod<ListModelsRequest, ListModelsResponse>(
          PathOf("ListModels"),
          [this](const CallStart&, const ListModelsRequest&, ListModelsResponse* response) {
            for (const ModelSnapshot& model : catalog_->List())
              ToMessage(WithTask(*catalog_, model), response->add_models());
            return absl::OkStatus();
          },
          options_.pool),
      AnsweredMethod<GetModelRequest, v1::Model>(
          PathOf("GetModel"), [this](const CallStart&, const GetModelRequest& request, v1::Model* response) {
            const auto version = VersionOf(*catalog_, request);
            if (!version.ok()) return version.status();
            const auto model = catalog_->Describe(request.model(), *version);
            if (!model.ok()) return model.status();
            ToMessage(WithTask(*catalog_, *model), response);
            if (model->timing) {
              const bool names_sizes = model->description.task != models::Task::kTensors;
              ToMessage(*model->timing, names_sizes, response->mutable_timing());
            }
            return absl::OkStatus();
          })};
}

void VisionService::Predict(std::shared_ptr<UnaryCall> call, BytePieces received) {
  const CallScope scope(ObserversOf(*pipeline_), call->start(), kPredict);
  scope.AddReceived(received.size());
  const auto predict = std::make_shared<Prediction>(
      Prediction{.call = std::move(call), .scope = scope, .received = std::move(received)});
  auto charge =
      ParseMessage(predict->received, &predict->message, pipeline_->deps().admission, scope.client());
  if (charge.ok()) predict->parse_charge = *std::move(charge);
  auto request =
      charge.ok() ? RequestOf(*catalog_, predict->message) : absl::StatusOr<Request>(charge.status());
  if (!request.ok()) {
    pipeline_->CountMalformed("grpc", request.status().code());
    predict->Fail(request.status(), options_.retry_jitter);
    return;
  }
  request->protocol = "grpc";
  request->charged_bytes = static_cast<int64_t>(predict->received.size());
  request->cancellation = predict->call->cancellation();
  scope.Describe(*request);
  // Refers to the call, which the callback below keeps.
  const VisionCall asked{.message = &predict->message,
                         .answer = &predict->answer,
                         .max_bytes = options_.max_message_bytes,
                         .around = AttestationSize(*pipeline_)};
  PredictVision(pipeline_, catalog_, *std::move(request), asked,
                [this, predict](const absl::StatusOr<Response>& outcome) {
                  if (!outcome.ok()) return predict->Fail(outcome.status(), options_.retry_jitter);
                  if (absl::Status attested = Attest(predict->scope, predict->message, &predict->answer);
                      !attested.ok())
                    return predict->Fail(attested, options_.retry_jitter);
                  SetTimings(outcome->timings, &predict->answer);
                  predict->Answer(outcome->charge);
                });
}

std::shared_ptr<CallHandler> VisionService::PredictStream() {
  return std::make_shared<VisionStream>(VisionStream::Server{.pipeline = pipeline_,
                                                             .catalog = catalog_,
                                                             .clock = clock_,
                                                             .retry_jitter = options_.retry_jitter,
                                                             .pool = options_.pool,
                                                             .max_message_bytes = options_.max_message_bytes,
                                                             .max_requests = options_.max_stream_requests});
}

std::shared_ptr<CallHandler> VisionService::Restore() {
  return std::make_shared<RestoreStream>(
      RestoreStream::Server{.pipeline = pipeline_,
                            .catalog = catalog_,
                            .clock = clock_,
                            .retry_jitter = options_.retry_jitter,
                            .uploads = &uploads_,
                            .pool = options_.pool,
                            .max_upload = options_.upload_timeout,
                            .min_bytes_per_second = options_.min_upload_bytes_per_second,
                            .grace = options_.upload_grace});
}

void VisionService::EndUploads() {
  uploads_.EndAll(absl::UnavailableError(
      "the server is shutting down and does not wait for the rest of the volume; try another replica"));
}

}  // namespace saccade::server
