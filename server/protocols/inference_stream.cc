#include "server/protocols/inference_stream.h"

#include <string>
#include <utility>

#include "server/protocols/call_records.h"
#include "server/protocols/grpc_status.h"
#include "server/protocols/inference_messages.h"
#include "server/protocols/inference_request.h"
#include "server/protocols/log_calls.h"
#include "server/protocols/peer.h"

namespace saccade::server {
namespace {

constexpr char kMethod[] = "inference.GRPCInferenceService/ModelStreamInfer";
constexpr char kFinalResponse[] = "triton_final_response";
constexpr char kErrorsEndIt[] = "triton_grpc_error";

bool WantsErrorsToEndIt(const grpc::CallbackServerContext& context) {
  const auto found = context.client_metadata().find(kErrorsEndIt);
  return found != context.client_metadata().end() && found->second == "true";
}

grpc::ByteBuffer Serialised(const inference::ModelStreamInferResponse& message) {
  const grpc::Slice slice(message.SerializeAsString());
  return {&slice, 1};
}

// Which request it was, and why.
grpc::ByteBuffer FailureBytes(const inference::ModelInferRequest& request, const absl::Status& why) {
  inference::ModelStreamInferResponse message;
  message.set_error_message(std::string(why.message()));
  inference::ModelInferResponse& response = *message.mutable_infer_response();
  response.set_id(request.id());
  response.set_model_name(request.model_name());
  response.set_model_version(request.model_version());
  (*response.mutable_parameters())[kFinalResponse].set_bool_param(true);
  return Serialised(message);
}

}  // namespace

InferenceStream* InferenceStream::Start(const Server& server, grpc::CallbackServerContext* context) {
  const std::shared_ptr<InferenceStream> stream(new InferenceStream(server, context));
  stream->Begin();
  return stream.get();
}

InferenceStream::InferenceStream(const Server& server, grpc::CallbackServerContext* context)
    : OrderedStream({kMaxRequests, server.max_message_bytes}, server.slow_readers, context),
      server_(server),
      errors_end_it_(WantsErrorsToEndIt(*context)) {}

void InferenceStream::Take(const std::shared_ptr<Slot>& slot) {
  const absl::Time arrival = server_.clock->Now();
  const auto record = RecordOf(server_.pipeline->deps().watch, *context(), kMethod, arrival);
  if (record != nullptr) record->AddReceived(static_cast<int64_t>(slot->received.Length()));
  const auto request = std::make_shared<InferenceRequest>();
  slot->request = request;
  const absl::Status received = ReadInferenceRequest(slot->received, *request);
  const auto version_of = [this](absl::string_view model, absl::string_view version) {
    return server_.inference->VersionOf(model, version);
  };
  auto call = received.ok() ? FromMessage(*request, *server_.shared_memory, version_of, arrival, deadline())
                            : absl::StatusOr<TensorCall>(received);
  if (!call.ok()) {
    server_.pipeline->CountMalformed("oip", call.status().code());
    Answer(slot, request, call.status(), record.get());
    return;
  }
  if (record != nullptr) record->Describe(*call);
  call->record = record;
  call->client = ClientOfPeer(context()->peer());
  call->cancellation = slot->cancellation;
  server_.inference->Infer(*std::move(call), [this, stream = shared_from_this(), slot, request,
                                              record](absl::StatusOr<TensorAnswer> outcome) {
    Answer(slot, request, std::move(outcome), record.get());
  });
}

absl::StatusOr<InferenceAnswer> InferenceStream::ToFinalAnswer(
    const std::shared_ptr<InferenceRequest>& request, absl::StatusOr<TensorAnswer> outcome) const {
  if (!outcome.ok()) return outcome.status();
  InferenceAnswer answer = ToAnswer(*std::move(outcome), request->fields.id());
  (*answer.fields.mutable_parameters())[kFinalResponse].set_bool_param(true);
  answer.source = request;
  if (absl::Status fits = CheckSize(answer, server_.max_message_bytes); !fits.ok()) return fits;
  return answer;
}

void InferenceStream::Answer(const std::shared_ptr<Slot>& slot,
                             const std::shared_ptr<InferenceRequest>& request,
                             absl::StatusOr<TensorAnswer> outcome, CallRecord* record) {
  std::shared_ptr<const AnswerCharge> charge = outcome.ok() ? outcome->charge : nullptr;
  auto answer = ToFinalAnswer(request, std::move(outcome));
  const absl::Status status = answer.status();
  const grpc::ByteBuffer bytes =
      answer.ok() ? ToStreamBytes(*std::move(answer)) : FailureBytes(request->fields, status);
  EndRecord(record, status, [&bytes] { return bytes.Length(); });
  const inference::ModelInferRequest& asked = request->fields;
  LogFault(status, {.method = kMethod, .model = asked.model_name(), .id = asked.id(), .record = record},
           *context());
  if (!status.ok() && errors_end_it_) Stop(ToGrpcStatus(status));
  Send(slot, bytes, std::move(charge));
}

}  // namespace saccade::server
