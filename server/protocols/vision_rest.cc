#include "server/protocols/vision_rest.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "server/core/cancellation.h"
#include "server/protocols/call_records.h"
#include "server/protocols/log_calls.h"
#include "server/protocols/peer.h"
#include "server/protocols/rest_error.h"
#include "server/protocols/vision_json.h"

namespace saccade::server {
namespace {

// The protocol's name in the metrics.
constexpr char kProtocol[] = "http";
constexpr char kRoute[] = "/v1/predict";
constexpr char kJson[] = "application/json";

// Requiring this type prevents requests from other sites' pages, for which browsers would first send a CORS
// preflight.
bool IsJson(const HttpRequest& request) {
  const absl::string_view type = request.Header("Content-Type").value_or("");
  return absl::StartsWithIgnoreCase(type, kJson) &&
         (type.size() == sizeof(kJson) - 1 || type[sizeof(kJson) - 1] == ';' ||
          type[sizeof(kJson) - 1] == ' ');
}

// `charge` is held until the response has been sent.
HttpResponse ToResponse(std::string json, std::shared_ptr<const AnswerCharge> charge) {
  struct Held {
    std::string json;
    std::shared_ptr<const AnswerCharge> charge;
  };
  auto held = std::make_shared<Held>(Held{.json = std::move(json), .charge = std::move(charge)});
  HttpResponse response;
  response.attached.emplace_back(std::string_view(held->json), held);
  return response;
}

}  // namespace

absl::StatusOr<HttpResponse> VisionRest::TryPredict(const HttpRequest& request, absl::Time arrival,
                                                    const std::shared_ptr<CallRecord>& record) const {
  const auto message = PredictRequestFromJson(request.body);
  if (!message.ok()) {
    pipeline_->CountMalformed(kProtocol, message.status().code());
    return message.status();
  }
  v1::PredictResponse answer;
  absl::Status status;
  std::shared_ptr<const AnswerCharge> charge;
  const auto cancellation = std::make_shared<Cancellation>();
  vision_->Run(
      *message,
      {.protocol = kProtocol,
       .client = ClientOfAddress(request.client->Address()),
       .arrival = arrival,
       .cancellation = cancellation,
       .record = record},
      &answer,
      [&status, &charge, &request](const absl::Status& outcome, std::shared_ptr<const AnswerCharge> held) {
        status = outcome;
        charge = std::move(held);
        // Done() must be last: afterwards this frame may be gone.
        request.client->Done();
      });
  request.client->AwaitDone([&cancellation] { cancellation->Cancel(); });
  LogFault(status,
           {.method = kRoute, .model = message->model(), .id = message->request_id(), .record = record.get()},
           request);
  if (!status.ok()) return status;
  auto json = ToProtobufJson(answer);
  if (!json.ok()) return json.status();
  return ToResponse(*std::move(json), std::move(charge));
}

HttpResponse VisionRest::Predict(const HttpRequest& request) const {
  if (!IsJson(request)) {
    return HttpError(415, "Content-Type is not application/json; send a saccade.v1.PredictRequest as JSON");
  }
  const absl::Time arrival = pipeline_->deps().clock->Now();
  const auto record = RecordOf(pipeline_->deps().watch, request, kRoute, arrival);
  auto response = TryPredict(request, arrival, record);
  HttpResponse answer = response.ok() ? *std::move(response) : ToHttp(response.status(), retry_jitter_);
  EndRecord(record.get(), response.status(), answer);
  return answer;
}

HttpResponse VisionRest::Models() const {
  auto json = ToProtobufJson(vision_->Models());
  if (!json.ok()) return ToHttp(json.status(), retry_jitter_);
  return ToResponse(*std::move(json), nullptr);
}

std::vector<HttpRoute> VisionRest::Routes() {
  return {{"GET", "/v1/models", [this](const HttpRequest&) { return Models(); }},
          {"POST", "/v1/predict", [this](const HttpRequest& request) { return Predict(request); }}};
}

}  // namespace saccade::server
