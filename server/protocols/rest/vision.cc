#include "server/protocols/rest/vision.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "server/core/byte_ledger.h"
#include "server/protocols/call_scope.h"
#include "server/protocols/rest/error.h"
#include "server/protocols/rest/media.h"
#include "server/protocols/rest/model_head.h"
#include "server/protocols/rest/paths.h"
#include "server/protocols/rest/query.h"
#include "server/protocols/rest/reply.h"
#include "server/protocols/vision/attest.h"
#include "server/protocols/vision/crops.h"
#include "server/protocols/vision/json.h"
#include "server/protocols/vision/messages.h"
#include "server/protocols/vision/versions.h"

namespace saccade::server {
namespace {

// The protocol's name in the metrics.
constexpr char kProtocol[] = "http";
constexpr char kPredictJson[] = "/v1/predict";
constexpr char kPredictFile[] = "/v1/predict/{model}";

std::optional<HttpResponse> CheckJson(const HttpRequest& request) {
  if (MediaTypeOf(request) == "application/json") return std::nullopt;
  return HttpError(415,
                   "Content-Type is not application/json; send a saccade.v1.PredictRequest as JSON, or "
                   "a file to /v1/predict/MODEL");
}

std::optional<HttpResponse> CheckFile(const HttpRequest& request) {
  return CheckMediaType(request, kFileTypes);
}

// Makes the input an empty file of the kind that the model takes.
void SetEmptyFile(models::Medium medium, v1::PredictRequest& message) {
  switch (medium) {
    case models::Medium::kPictures:
      message.mutable_encoded();
      break;
    case models::Medium::kClip:
      message.mutable_clip()->mutable_video();
      break;
    case models::Medium::kVolume:
      message.mutable_volume()->mutable_tiff();
      break;
  }
}

}  // namespace

// A prediction until it is answered. The input points into the message or the request.
struct VisionRest::Call {
  std::shared_ptr<const HttpRequest> request;
  HttpReply reply;
  // Refers to the request.
  CallScope scope;
  // For the message, if it was read from JSON. Declared before it, so that the message is freed first.
  ByteCharge charge = {};
  v1::PredictRequest message = {};
  v1::PredictResponse answer = {};
  // The input, if it is the request's body.
  absl::string_view file = {};
};

std::shared_ptr<VisionRest::Call> VisionRest::Begin(std::shared_ptr<const HttpRequest> request,
                                                    const char* route, const HttpReply& reply) const {
  const HttpRequest& sent = *request;
  return std::make_shared<Call>(Call{.request = std::move(request),
                                     .reply = reply,
                                     .scope = CallScope(ObserversOf(*options_.pipeline), sent, route)});
}

absl::StatusOr<Request> VisionRest::ReadJson(Call& call) const {
  auto charge = PredictRequestFromJson(call.request->body, &call.message, options_.pipeline->deps().admission,
                                       call.request->client, call.request->compressed_bytes);
  if (!charge.ok()) return charge.status();
  call.charge = *std::move(charge);
  auto request = RequestOf(*options_.catalog, call.message);
  if (request.ok()) request->charged_bytes = call.charge.bytes();
  return request;
}

absl::StatusOr<Request> VisionRest::ReadFile(Call& call) const {
  if (absl::Status named = CheckModelIn(*call.request, "model"); !named.ok()) return named;
  call.message.set_model(ValueIn(*call.request, "model"));
  // The parameters for a model that does not exist are not parsed.
  if (!call.request->query.empty()) {
    absl::Status found = options_.catalog->FindReady(call.message.model(), 0).status();
    if (absl::IsNotFound(found)) return found;
  }
  auto parameters = ParseQuery(call.request->query);
  if (!parameters.ok()) return parameters.status();
  if (absl::Status common = TakeCommonParameters(*parameters, &call.message); !common.ok()) return common;
  const auto version = VersionOf(*options_.catalog, call.message);
  if (!version.ok()) return version.status();
  const auto model = options_.catalog->FindReady(call.message.model(), *version);
  if (!model.ok()) return model.status();
  const auto of_task = TaskModelOf(*options_.catalog, *model);
  if (!of_task.ok()) return of_task.status();
  // An ensemble without crops has no description; the pipeline refuses it.
  models::Description none;
  none.task = models::Task::kTensors;
  const models::Description& description = *of_task == nullptr ? none : (*of_task)->description();
  if (absl::Status set = SetOptions(*parameters, description.task, &call.message); !set.ok()) return set;
  if (absl::Status whole = CheckIsWholeFile(*call.request); !whole.ok()) return whole;
  SetEmptyFile(description.input.medium, call.message);
  auto request = RequestOf(*options_.catalog, call.message);
  if (!request.ok()) return request.status();
  const absl::string_view body = call.file = call.request->body;
  request->input = std::vector<Picture>{
      EncodedPicture{.data = {.owner = call.request->body_owner, .bytes = {body.data(), body.size()}}}};
  request->input_name = "body";
  request->charged_bytes = static_cast<int64_t>(body.size());
  return request;
}

HttpResponse VisionRest::Write(const Call& call, const absl::Status& status) const {
  auto json = status.ok() ? ToProtobufJson(call.answer) : absl::StatusOr<std::string>(status);
  const absl::Status made = json.status();
  HttpResponse response;
  if (made.ok()) {
    response.body = *std::move(json);
  } else {
    response = ToHttp(made, options_.retry_jitter);
  }
  call.scope.End(made, response, call.message.model(), call.message.request_id());
  return response;
}

void VisionRest::Answer(const std::shared_ptr<const Call>& call, const absl::Status& status,
                        std::shared_ptr<const AnswerCharge> charge) const {
  const int64_t bytes = status.ok() ? static_cast<int64_t>(call->answer.ByteSizeLong()) : 0;
  ReplyWith(
      options_.pool, call->request->client, bytes,
      // The charge is for the message, which is gone when the text has been written.
      [this, call, status, charge = std::move(charge)](const absl::Status& room) {
        return Write(*call, status.ok() ? room : status);
      },
      call->reply);
}

void VisionRest::Predict(const std::shared_ptr<Call>& call, absl::StatusOr<Request> request) {
  if (!request.ok()) {
    options_.pipeline->CountMalformed(kProtocol, request.status().code());
    return Answer(call, request.status(), nullptr);
  }
  request->protocol = kProtocol;
  request->cancellation = call->request->cancellation;
  call->scope.Describe(*request);
  // Refers to the call, which the callback below keeps.
  const VisionCall asked{.message = &call->message,
                         .answer = &call->answer,
                         .max_bytes = options_.max_message_bytes,
                         .around = AttestationSize(*options_.pipeline)};
  PredictVision(options_.pipeline, options_.catalog, *std::move(request), asked,
                [this, call](const absl::StatusOr<Response>& outcome) {
                  absl::Status status = outcome.status();
                  if (status.ok()) status = Attest(call->scope, call->message, &call->answer, call->file);
                  if (status.ok()) SetTimings(outcome->timings, &call->answer);
                  Answer(call, status, outcome.ok() ? outcome->charge : nullptr);
                });
}

void VisionRest::PredictJson(std::shared_ptr<const HttpRequest> request, const HttpReply& reply) {
  if (auto refusal = CheckJson(*request)) return reply(*std::move(refusal));
  const auto call = Begin(std::move(request), kPredictJson, reply);
  Predict(call, ReadJson(*call));
}

void VisionRest::PredictFile(std::shared_ptr<const HttpRequest> request, const HttpReply& reply) {
  if (auto refusal = CheckFile(*request)) return reply(*std::move(refusal));
  const auto call = Begin(std::move(request), kPredictFile, reply);
  auto read = ReadFile(*call);
  if (!absl::IsUnavailable(read.status())) return Predict(call, std::move(read));
  // The parameters are read by the model's task, so a model that requests load is awaited first.
  CallHead head;
  head.model = call->message.model();
  head.client = call->request->client;
  head.cancellation = call->request->cancellation;
  ModelFinder::Resume resume = [this, call](absl::Status loaded) {
    Predict(call, loaded.ok() ? ReadFile(*call) : absl::StatusOr<Request>(std::move(loaded)));
  };
  if (absl::Status allowed = options_.pipeline->CheckModel(head); !allowed.ok())
    return Predict(call, std::move(allowed));
  // The model may have become ready meanwhile.
  if (!options_.catalog->AwaitModel(head, resume)) Predict(call, ReadFile(*call));
}

HttpResponse VisionRest::Models(const HttpRequest& request) {
  const auto list = [this] {
    v1::ListModelsResponse models;
    for (const ModelSnapshot& model : options_.catalog->List())
      ToMessage(WithTask(*options_.catalog, model), models.add_models());
    return ToProtobufJson(models);
  };
  // Read before the list: what changes meanwhile has a later generation.
  const uint64_t generation = options_.catalog->generation();
  auto response = models_.Get(request, generation, options_.pipeline->deps().clock, list);
  return response.ok() ? *std::move(response) : ToHttp(response.status(), options_.retry_jitter);
}

std::vector<HttpRoute> VisionRest::Routes() {
  const auto predict = [this](auto function) -> HttpHandler {
    return [this, function](std::shared_ptr<const HttpRequest> request, const HttpReply& reply) {
      (this->*function)(std::move(request), reply);
    };
  };
  return {{"GET", "/v1/models", Responding([this](const HttpRequest& request) { return Models(request); }),
           /*may_block=*/true},
          {.method = "POST",
           .path = kPredictJson,
           .handler = predict(&VisionRest::PredictJson),
           .check_head = CheckJson},
          {.method = "POST",
           .path = kPredictFile,
           .handler = predict(&VisionRest::PredictFile),
           // The threads that decode pictures read the file.
           .bytes_to_parse = [](const HttpHeaders&, absl::string_view) -> size_t { return 0; },
           .check_head =
               [check = ModelHeadCheck{options_.pipeline, options_.catalog, options_.retry_jitter}](
                   const HttpRequest& request) {
                 auto refusal = CheckFile(request);
                 return refusal ? refusal : check.Refuse(request, kPredictFile, "model");
               }}};
}

}  // namespace saccade::server
