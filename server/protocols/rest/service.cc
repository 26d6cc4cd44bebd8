#include "server/protocols/rest/service.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/inference/extensions.h"
#include "server/protocols/attest_tensors.h"
#include "server/protocols/call_scope.h"
#include "server/protocols/rest/answer.h"
#include "server/protocols/rest/error.h"
#include "server/protocols/rest/media.h"
#include "server/protocols/rest/paths.h"
#include "server/protocols/rest/reply.h"

namespace saccade::server {
namespace {

using Json = nlohmann::ordered_json;

// The protocol's name in the metrics.
constexpr char kProtocol[] = "http";

HttpResponse ToResponse(const Json& body) {
  // Replaces invalid UTF-8 in names.
  return {200, "application/json", body.dump(-1, ' ', false, Json::error_handler_t::replace)};
}

// Triton answers without a body; KServe's client reads one like this.
HttpResponse Health(const char* what, bool good, absl::string_view problem) {
  if (good) return ToResponse({{what, true}});
  HttpResponse response = HttpError(503, problem);
  response.headers.emplace_back("Retry-After", "1");
  return response;
}

// Triton's clients decompress only the answers to inferences.
HttpHandler NotCompressing(HttpHandler handler) {
  return [handler = std::move(handler)](std::shared_ptr<const HttpRequest> request, HttpReply reply) {
    handler(std::move(request), [reply = std::move(reply)](HttpResponse response) {
      response.compressible = false;
      reply(std::move(response));
    });
  };
}

Json ToJson(const std::vector<TensorDescription>& tensors) {
  Json described = Json::array();
  for (const TensorDescription& tensor : tensors) {
    described.push_back(
        {{"name", tensor.name}, {"datatype", std::string(NameOf(tensor.type))}, {"shape", tensor.shape}});
  }
  return described;
}

// What a response with a large text takes until it is sent.
struct Kept {
  std::shared_ptr<const void> answer;
  ByteCharge text;
};

const char* InferRouteOf(const HttpRequest& request) {
  return request.path_values.count("version") > 0 ? "/v2/models/{model}/versions/{version}/infer"
                                                  : "/v2/models/{model}/infer";
}

bool IsText(const Tensor& output, const RestForm& form) {
  return !output.shared && !form.BinaryOf(output.name);
}

// The bytes of the outputs that are written as JSON.
int64_t TextBytes(const TensorAnswer& answer, const RestForm& form) {
  int64_t bytes = 0;
  for (const Tensor& output : answer.outputs) {
    if (IsText(output, form)) bytes += static_cast<int64_t>(output.data.size());
  }
  return bytes;
}

// The largest size of those outputs as JSON. A byte becomes at most six: "false,", or a character that has to
// be escaped; a number of several bytes at most four for each, as "-1.1754944e-38,".
int64_t MaxJsonBytes(const TensorAnswer& answer, const RestForm& form) {
  int64_t bytes = 0;
  for (const Tensor& output : answer.outputs) {
    if (!IsText(output, form)) continue;
    const bool bytewise = output.type == DataType::kBytes || SizeOf(output.type) == 1;
    bytes += (bytewise ? 6 : 4) * static_cast<int64_t>(output.data.size());
  }
  return bytes;
}

}  // namespace

// An inference until it is answered. The tensors may point into the request.
struct RestService::InferCall {
  std::shared_ptr<const HttpRequest> request;
  HttpReply reply;
  // Refers to the request.
  CallScope scope;
  // For tensors that were read from JSON.
  std::vector<ByteCharge> charges = {};
  std::string id = {};
  RestForm form = {};
  AskedTensors asked = {};
};

absl::StatusOr<ModelInterface> RestService::Describe(const HttpRequest& request) const {
  const auto version = VersionIn(request, *deps_.inference);
  if (!version.ok()) return version.status();
  return deps_.inference->Describe(request.path_values.at("model"), *version);
}

HttpResponse RestService::ServerMetadata() const {
  // Extensions() has those of both transports; this one is HTTP's own.
  Json extensions = Json::array({"binary_tensor_data"});
  for (std::string& name : Extensions(*deps_.shared_memory)) extensions.push_back(std::move(name));
  return ToResponse({{"name", options_.server_name},
                     {"version", options_.server_version},
                     {"extensions", std::move(extensions)}});
}

HttpResponse RestService::ModelMetadata(const HttpRequest& request) const {
  const auto model = Describe(request);
  if (!model.ok()) return ToHttp(model.status(), options_.retry_jitter);
  Json versions = Json::array();
  for (const int64_t version : model->versions) versions.push_back(absl::StrCat(version));
  return ToResponse({{"name", model->name},
                     {"versions", std::move(versions)},
                     {"platform", model->platform},
                     {"inputs", ToJson(model->inputs)},
                     {"outputs", ToJson(model->outputs)}});
}

HttpResponse RestService::ModelReady(const HttpRequest& request) const {
  const auto model = Describe(request);
  if (!model.ok()) return ToHttp(model.status(), options_.retry_jitter);
  return ToResponse({{"name", model->name}, {"ready", true}});
}

absl::StatusOr<RestCall> RestService::Read(const HttpRequest& request) const {
  const auto version = VersionIn(request, *deps_.inference);
  if (!version.ok()) return version.status();
  const RestBody body{
      .bytes = request.body, .owner = request.body_owner, .json_length = request.Header(kJsonLengthHeader)};
  const auto is_raw = IsRawBody(body);
  if (!is_raw.ok()) return is_raw.status();
  const auto model = *is_raw ? Describe(request) : ModelInterface();
  if (!model.ok()) return model.status();
  if (*is_raw && model->inputs.size() == 1 && model->inputs[0].type == DataType::kBytes) {
    if (absl::Status whole = CheckIsWholeFile(request); !whole.ok()) return whole;
  }
  auto read = *is_raw ? ReadRawRequest(body, model->inputs, model->max_batch_size > 0)
                      : ReadRestRequest(body, *deps_.shared_memory,
                                        {.max_bytes = static_cast<size_t>(options_.max_message_bytes),
                                         .ledger = deps_.pipeline->deps().admission,
                                         .client = request.client,
                                         .cancellation = request.cancellation.get(),
                                         .compressed_bytes = request.compressed_bytes});
  if (!read.ok()) return read.status();
  read->call.model = request.path_values.at("model");
  read->call.version = *version;
  read->call.cancellation = request.cancellation;
  read->call.protocol = kProtocol;
  return read;
}

absl::StatusOr<HttpResponse> RestService::MakeAnswer(const InferCall& call, TensorAnswer answer) const {
  std::shared_ptr<const void> kept = std::move(answer.charge);
  const int64_t bytes = MaxJsonBytes(answer, call.form);
  const bool is_large = bytes > kMaxTextHere;
  if (is_large) {
    auto text = deps_.pipeline->deps().admission->Charge(call.request->client,
                                                         std::min(bytes, options_.max_message_bytes));
    if (!text.ok()) return text.status();
    kept = std::make_shared<const Kept>(Kept{std::move(kept), *std::move(text)});
  }
  auto response = ToRestAnswer(std::move(answer), call.id, call.form, options_.max_message_bytes);
  if (response.ok()) {
    response->kept = std::move(kept);
    response->is_charged = is_large;
  }
  return response;
}

HttpResponse RestService::Write(const InferCall& call, absl::StatusOr<TensorAnswer> outcome) const {
  auto made =
      outcome.ok() ? MakeAnswer(call, *std::move(outcome)) : absl::StatusOr<HttpResponse>(outcome.status());
  const absl::Status status = made.status();
  HttpResponse response = made.ok() ? *std::move(made) : ToHttp(status, options_.retry_jitter);
  call.scope.End(status, response, ModelIn(*call.request), call.id);
  return response;
}

void RestService::Answer(const std::shared_ptr<const InferCall>& call,
                         absl::StatusOr<TensorAnswer> outcome) const {
  const int64_t text = outcome.ok() ? TextBytes(*outcome, call->form) : 0;
  ReplyWith(
      options_.pool, call->request->client, text,
      [this, call, outcome = std::move(outcome)](const absl::Status& room) mutable {
        return Write(*call, room.ok() ? std::move(outcome) : room);
      },
      call->reply);
}

void RestService::Infer(std::shared_ptr<const HttpRequest> request, const HttpReply& reply) const {
  const HttpRequest& sent = *request;
  auto call = std::make_shared<InferCall>(
      InferCall{.request = std::move(request),
                .reply = reply,
                .scope = CallScope(ObserversOf(*deps_.pipeline), sent, InferRouteOf(sent))});
  auto read = Read(sent);
  if (!absl::IsUnavailable(read.status())) return Infer(call, std::move(read));
  // A body without JSON is read by the model's inputs, so a model that requests load is awaited first.
  CallHead head;
  head.model = sent.path_values.at("model");
  head.client = sent.client;
  head.cancellation = sent.cancellation;
  if (absl::Status allowed = deps_.pipeline->CheckModel(head); !allowed.ok()) return Infer(call, allowed);
  ModelFinder::Resume resume = [this, call](absl::Status loaded) {
    Infer(call, loaded.ok() ? Read(*call->request) : absl::StatusOr<RestCall>(std::move(loaded)));
  };
  // The model may have become ready meanwhile.
  if (!deps_.pipeline->deps().models->AwaitModel(head, resume)) Infer(call, Read(*call->request));
}

void RestService::Infer(const std::shared_ptr<InferCall>& call, absl::StatusOr<RestCall> read) const {
  if (!read.ok()) {
    deps_.pipeline->CountMalformed(kProtocol, read.status().code());
    return Answer(call, read.status());
  }
  call->id = read->call.id;
  call->form = std::move(read->form);
  call->charges = std::move(read->charges);
  call->scope.Describe(read->call);
  call->asked = AskedOf(call->scope, read->call);
  deps_.inference->Infer(std::move(read->call), [this, call](absl::StatusOr<TensorAnswer> outcome) {
    AttestOn(options_.pool, call->scope, {call, &call->asked}, std::move(outcome),
             [this, call](absl::StatusOr<TensorAnswer> attested) { Answer(call, std::move(attested)); });
  });
}

std::vector<HttpRoute> RestService::Routes() {
  std::vector<HttpRoute> routes = {
      {"GET", "/v2", Responding([this](const HttpRequest&) { return ServerMetadata(); })},
      {"GET", "/v2/health/live", Responding([this](const HttpRequest&) {
         return Health("live", options_.live(), "a forward pass hangs");
       })},
      {"GET", "/v2/health/ready", Responding([this](const HttpRequest&) {
         return Health("ready", options_.ready(), "loading or draining");
       })}};
  const auto add = [&routes](std::vector<HttpRoute> more) {
    std::move(more.begin(), more.end(), std::back_inserter(routes));
  };
  add(ForVersions("GET", "",
                  Responding([this](const HttpRequest& request) { return ModelMetadata(request); })));
  add(ForVersions("GET", "/ready",
                  Responding([this](const HttpRequest& request) { return ModelReady(request); })));
  std::vector<HttpRoute> infer = ForVersions(
      "POST", "/infer", [this](std::shared_ptr<const HttpRequest> request, const HttpReply& reply) {
        Infer(std::move(request), reply);
      });
  const bool may_share = deps_.shared_memory->allowed();
  for (HttpRoute& route : infer) {
    route.bytes_to_parse = may_share ? RestBytesToRead : RestBytesToParse;
    route.check_head = [this](const HttpRequest& request) {
      return head_check_.Refuse(request, InferRouteOf(request), "model_name");
    };
  }
  add(std::move(infer));
  add(extensions_.Routes());
  add(repository_.Routes());
  for (HttpRoute& route : routes) {
    if (!absl::EndsWith(route.path, "/infer")) route.handler = NotCompressing(std::move(route.handler));
    if (route.method == "POST") route = TakingJsonOrBinary(std::move(route));
  }
  return routes;
}

}  // namespace saccade::server
