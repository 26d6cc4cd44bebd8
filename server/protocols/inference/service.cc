#include "server/protocols/inference/service.h"

#include "absl/strings/str_cat.h"
#include "server/grpc/small_messages.h"
#include "server/inference/extensions.h"
#include "server/protocols/attest_tensors.h"
#include "server/protocols/call_scope.h"
#include "server/protocols/capture_headers.h"
#include "server/protocols/grpc_status.h"
#include "server/protocols/inference/answer.h"
#include "server/protocols/inference/messages.h"
#include "server/protocols/inference/request.h"
#include "server/protocols/inference/stream.h"
#include "server/protocols/input_method.h"
#include "server/protocols/message_methods.h"

namespace saccade::server {
namespace {

constexpr char kModelInfer[] = "inference.GRPCInferenceService/ModelInfer";

absl::StatusOr<ModelInterface> Describe(const Inference& inference, const std::string& name,
                                        const std::string& version) {
  const auto number = inference.VersionOf(name, version);
  if (!number.ok()) return number.status();
  return inference.Describe(name, *number);
}

// A probe's method, whose message is charged with the call's head: so it is answered while the ledger has no
// room.
CallMethod Probe(CallMethod method) {
  method.max_message_bytes = kMaxSmallMessage;
  return method;
}

// A ModelInfer until it is answered. The tensors point into the request.
struct InferenceCall {
  std::shared_ptr<UnaryCall> call;
  // Refers to the call.
  CallScope scope;
  InferenceRequest request = {};
  AskedTensors asked = {};

  const std::string& model() const { return request.fields.model_name(); }
  const std::string& id() const { return request.fields.id(); }

  void Fail(const absl::Status& status, RetryJitter* jitter) const {
    scope.End(status, request.received, BytePieces(), model(), id());
    call->Fail(ToCallEnd(status, jitter));
  }

  void Answer(InferenceAnswer answer) const {
    BytePieces bytes = ToBytes(std::move(answer));
    scope.End(absl::OkStatus(), request.received, bytes, model(), id());
    call->Respond(std::move(bytes));
  }
};

}  // namespace

std::string InferencePath(const char* method) {
  return absl::StrCat("/inference.GRPCInferenceService/", method);
}

std::vector<CallMethod> InferenceService::Methods() {
  CallMethods methods;
  AddHealth(methods);
  AddMetadata(methods);
  methods.push_back(InputMethod(
      InferencePath("ModelInfer"), "inference.ModelInferRequest", options_.pool,
      [this](std::shared_ptr<UnaryCall> call, BytePieces received) {
        ModelInfer(std::move(call), std::move(received));
      },
      [this](absl::StatusCode code) { deps_.pipeline->CountMalformed("oip", code); }, options_.retry_jitter,
      [this](const BytePieces& message) {
        return BytesToRead(message, deps_.shared_memory->allowed(),
                           CaptureIfEnabled(deps_.pipeline->deps().capture) != nullptr);
      }));
  const auto make_stream = [this] {
    return std::make_shared<InferenceStream>(
        InferenceStream::Server{.inference = deps_.inference,
                                .pipeline = deps_.pipeline,
                                .shared_memory = deps_.shared_memory,
                                .clock = deps_.clock,
                                .pool = options_.pool,
                                .max_message_bytes = options_.max_message_bytes});
  };
  methods.push_back(
      {.path = InferencePath("ModelStreamInfer"), .make = make_stream, .charges_answers = true});
  AddModelFacts(methods);
  AddRepository(methods);
  AddSystemSharedMemory(methods);
  AddCudaSharedMemory(methods);
  AddSettings(methods);
  return methods;
}

void InferenceService::AddHealth(CallMethods& methods) {
  using inference::ModelReadyRequest, inference::ModelReadyResponse;
  using inference::ServerLiveRequest, inference::ServerLiveResponse;
  using inference::ServerReadyRequest, inference::ServerReadyResponse;
  methods.push_back(Probe(AnsweredMethod<ServerLiveRequest, ServerLiveResponse>(
      InferencePath("ServerLive"),
      [](const CallStart&, const ServerLiveRequest&, ServerLiveResponse* response) {
        response->set_live(true);
        return absl::OkStatus();
      })));
  methods.push_back(Probe(AnsweredMethod<ServerReadyRequest, ServerReadyResponse>(
      InferencePath("ServerReady"),
      [this](const CallStart&, const ServerReadyRequest&, ServerReadyResponse* response) {
        response->set_ready(options_.ready());
        return absl::OkStatus();
      })));
  // As in Triton, an unknown model is not ready rather than an error.
  methods.push_back(AnsweredMethod<ModelReadyRequest, ModelReadyResponse>(
      InferencePath("ModelReady"),
      [this](const CallStart&, const ModelReadyRequest& request, ModelReadyResponse* response) {
        const auto version = deps_.inference->VersionOf(request.name(), request.version());
        // An unknown model has no labels either.
        if (!version.ok() && !absl::IsNotFound(version.status())) return version.status();
        response->set_ready(version.ok() && deps_.inference->CheckReady(request.name(), *version).ok());
        return absl::OkStatus();
      }));
}

void InferenceService::AddMetadata(CallMethods& methods) {
  using inference::ModelMetadataRequest, inference::ModelMetadataResponse;
  using inference::ServerMetadataRequest, inference::ServerMetadataResponse;
  methods.push_back(AnsweredMethod<ServerMetadataRequest, ServerMetadataResponse>(
      InferencePath("ServerMetadata"),
      [this](const CallStart&, const ServerMetadataRequest&, ServerMetadataResponse* response) {
        response->set_name(options_.server_name);
        response->set_version(options_.server_version);
        for (std::string& extension : Extensions(*deps_.shared_memory)) {
          response->add_extensions(std::move(extension));
        }
        return absl::OkStatus();
      }));
  methods.push_back(AnsweredMethod<ModelMetadataRequest, ModelMetadataResponse>(
      InferencePath("ModelMetadata"),
      [this](const CallStart&, const ModelMetadataRequest& request, ModelMetadataResponse* response) {
        const auto model = Describe(*deps_.inference, request.name(), request.version());
        if (model.ok()) ToMessage(*model, response);
        return model.status();
      }));
}

void InferenceService::ModelInfer(std::shared_ptr<UnaryCall> call, BytePieces received) {
  const CallScope scope(ObserversOf(*deps_.pipeline), call->start(), kModelInfer);
  scope.AddReceived(received.size());
  const auto infer = std::make_shared<InferenceCall>(InferenceCall{.call = std::move(call), .scope = scope});
  const absl::Status read = ReadInferenceRequest(std::move(received), infer->request,
                                                 deps_.pipeline->deps().admission, scope.client());
  const auto version_of = [this](absl::string_view model, absl::string_view version) {
    return deps_.inference->VersionOf(model, version);
  };
  auto parsed = read.ok() ? FromMessage(infer->request, *deps_.shared_memory, version_of, scope.arrival(),
                                        scope.deadline(), scope.client(), deps_.pipeline->deps().admission)
                          : absl::StatusOr<TensorCall>(read);
  if (!parsed.ok()) {
    deps_.pipeline->CountMalformed("oip", parsed.status().code());
    infer->Fail(parsed.status(), nullptr);
    return;
  }
  scope.Describe(*parsed);
  infer->asked = AskedOf(scope, *parsed);
  parsed->charged_bytes += static_cast<int64_t>(infer->request.received.size());
  parsed->cancellation = infer->call->cancellation();
  const auto respond = [this, infer](absl::StatusOr<TensorAnswer> outcome) {
    if (!outcome.ok()) return infer->Fail(outcome.status(), options_.retry_jitter);
    InferenceAnswer answer = ToAnswer(*std::move(outcome), infer->id());
    if (const absl::Status fits = CheckSize(answer, options_.max_message_bytes); !fits.ok()) {
      return infer->Fail(fits, options_.retry_jitter);
    }
    // The answer's tensors may point into the request.
    answer.source = infer;
    infer->Answer(std::move(answer));
  };
  deps_.inference->Infer(*std::move(parsed), [this, infer, respond](absl::StatusOr<TensorAnswer> outcome) {
    AttestOn(options_.pool, infer->scope, {infer, &infer->asked}, std::move(outcome), respond);
  });
}

}  // namespace saccade::server
