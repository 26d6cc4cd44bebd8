#include "server/protocols/rest_service.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/core/cancellation.h"
#include "server/inference/extensions.h"
#include "server/protocols/call_records.h"
#include "server/protocols/log_calls.h"
#include "server/protocols/peer.h"
#include "server/protocols/rest_answer.h"
#include "server/protocols/rest_error.h"
#include "server/protocols/rest_paths.h"
#include "server/protocols/rest_request.h"

namespace saccade::server {
namespace {

using Json = nlohmann::ordered_json;

// The protocol's name in the metrics.
constexpr char kProtocol[] = "http";

HttpResponse ToResponse(const Json& body) {
  // Replaces invalid UTF-8 in names.
  return {200, "application/json", body.dump(-1, ' ', false, Json::error_handler_t::replace)};
}

HttpResponse Health(bool good, absl::string_view problem) {
  if (good) return {200, "text/plain", "OK\n"};
  HttpResponse response = HttpError(503, problem);
  response.headers.emplace_back("Retry-After", "1");
  return response;
}

Json ToJson(const std::vector<TensorDescription>& tensors) {
  Json described = Json::array();
  for (const TensorDescription& tensor : tensors) {
    described.push_back(
        {{"name", tensor.name}, {"datatype", std::string(NameOf(tensor.type))}, {"shape", tensor.shape}});
  }
  return described;
}

}  // namespace

absl::StatusOr<ModelInterface> RestService::Describe(const HttpRequest& request) const {
  const auto version = VersionIn(request, *deps_.inference);
  if (!version.ok()) return version.status();
  return deps_.inference->Describe(request.path_values.at("model"), *version);
}

HttpResponse RestService::ServerMetadata() const {
  // Extensions() has those of both transports; this one is HTTP's own.
  Json extensions = Json::array({"binary_tensor_data"});
  for (std::string& name : Extensions(*deps_.shared_memory)) extensions.push_back(std::move(name));
  return ToResponse(
      {{"name", "saccade"}, {"version", options_.server_version}, {"extensions", std::move(extensions)}});
}

HttpResponse RestService::ModelMetadata(const HttpRequest& request) const {
  const auto model = Describe(request);
  if (!model.ok()) return ToHttp(model.status(), options_.retry_jitter);
  return ToResponse({{"name", model->name},
                     {"versions", Json::array({absl::StrCat(model->version)})},
                     {"platform", model->platform},
                     {"inputs", ToJson(model->inputs)},
                     {"outputs", ToJson(model->outputs)}});
}

HttpResponse RestService::ModelReady(const HttpRequest& request) const {
  const auto model = Describe(request);
  if (!model.ok()) return ToHttp(model.status(), options_.retry_jitter);
  return Health(true, "");
}

absl::StatusOr<RestCall> RestService::Read(const HttpRequest& request, absl::Time arrival) const {
  const auto version = VersionIn(request, *deps_.inference);
  if (!version.ok()) return version.status();
  const RestBody body{
      .bytes = request.body, .owner = request.body_owner, .json_length = request.Header(kJsonLengthHeader)};
  const auto is_raw = IsRawBody(body);
  if (!is_raw.ok()) return is_raw.status();
  const auto model = *is_raw ? Describe(request) : ModelInterface();
  if (!model.ok()) return model.status();
  auto read =
      *is_raw ? ReadRawRequest(body, model->inputs)
              : ReadRestRequest(body, *deps_.shared_memory, static_cast<size_t>(options_.max_message_bytes));
  if (!read.ok()) return read.status();
  read->call.model = request.path_values.at("model");
  read->call.version = *version;
  read->call.client = ClientOfAddress(request.client->Address());
  read->call.arrival = arrival;
  read->call.protocol = kProtocol;
  return read;
}

absl::StatusOr<TensorAnswer> RestService::Await(TensorCall call, HttpClient& client) const {
  const auto cancellation = std::make_shared<Cancellation>();
  call.cancellation = cancellation;
  absl::StatusOr<TensorAnswer> outcome = absl::UnknownError("not answered yet");
  deps_.inference->Infer(std::move(call), [&outcome, &client](absl::StatusOr<TensorAnswer> answer) {
    outcome = std::move(answer);
    // Done() must be last: afterwards this frame may be gone.
    client.Done();
  });
  client.AwaitDone([&cancellation] { cancellation->Cancel(); });
  return outcome;
}

absl::StatusOr<HttpResponse> RestService::TryInfer(const HttpRequest& request, absl::Time arrival,
                                                   const std::shared_ptr<CallRecord>& record) const {
  auto read = Read(request, arrival);
  if (!read.ok()) {
    deps_.pipeline->CountMalformed(kProtocol, read.status().code());
    return read.status();
  }
  const std::string id = read->call.id;
  if (record != nullptr) record->Describe(read->call);
  read->call.record = record;
  auto answer = Await(std::move(read->call), *request.client);
  LogFault(
      answer.status(),
      {.method = request.path, .model = request.path_values.at("model"), .id = id, .record = record.get()},
      request);
  if (!answer.ok()) return answer.status();
  return ToRestAnswer(*std::move(answer), id, read->form, options_.max_message_bytes);
}

HttpResponse RestService::Infer(const HttpRequest& request) const {
  const absl::Time arrival = deps_.clock->Now();
  const bool names_version = request.path_values.count("version") > 0;
  const auto record = RecordOf(
      deps_.pipeline->deps().watch, request,
      names_version ? "/v2/models/{model}/versions/{version}/infer" : "/v2/models/{model}/infer", arrival);
  auto response = TryInfer(request, arrival, record);
  HttpResponse answer =
      response.ok() ? *std::move(response) : ToHttp(response.status(), options_.retry_jitter);
  EndRecord(record.get(), response.status(), answer);
  return answer;
}

std::vector<HttpRoute> RestService::Routes() {
  std::vector<HttpRoute> routes = {
      {"GET", "/v2", [this](const HttpRequest&) { return ServerMetadata(); }},
      {"GET", "/v2/health/live",
       [this](const HttpRequest&) { return Health(options_.live(), "a forward pass hangs"); }},
      {"GET", "/v2/health/ready",
       [this](const HttpRequest&) { return Health(options_.ready(), "loading or draining"); }}};
  const auto add = [&routes](const std::vector<HttpRoute>& more) {
    routes.insert(routes.end(), more.begin(), more.end());
  };
  add(ForVersions("GET", "", [this](const HttpRequest& request) { return ModelMetadata(request); }));
  add(ForVersions("GET", "/ready", [this](const HttpRequest& request) { return ModelReady(request); }));
  add(ForVersions("POST", "/infer", [this](const HttpRequest& request) { return Infer(request); }));
  add(extensions_.Routes());
  add(repository_.Routes());
  return routes;
}

}  // namespace saccade::server
