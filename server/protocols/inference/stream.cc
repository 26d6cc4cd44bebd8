#include "server/protocols/inference/stream.h"

#include <memory>
#include <string>
#include <utility>

#include "server/engine/count_shed.h"
#include "server/grpc/message_size.h"
#include "server/grpc/serialize_message.h"
#include "server/inference/parameters.h"
#include "server/protocols/attest_tensors.h"
#include "server/protocols/call_headers.h"
#include "server/protocols/grpc_status.h"
#include "server/protocols/inference/messages.h"

namespace saccade::server {
namespace {

constexpr char kMethod[] = "inference.GRPCInferenceService/ModelStreamInfer";
constexpr char kFinalResponse[] = "triton_final_response";
constexpr char kErrorsEndIt[] = "triton_grpc_error";
// Labels of versions have at most so many characters (version_policy.cc); numbers have fewer.
constexpr size_t kMaxVersion = 64;
// A message may repeat what it was sent. Unary calls bound theirs in the trailers.
constexpr size_t kMaxError = 4096;

// Empty for a text that is too long, which is what was wrong with the request.
std::string UpTo(size_t max, const std::string& text) { return text.size() > max ? std::string() : text; }

// The beginning of a text, up to a whole character of UTF-8.
absl::string_view Beginning(size_t max, absl::string_view text) {
  if (text.size() <= max) return text;
  while (max > 0 && (static_cast<unsigned char>(text[max]) & 0xC0) == 0x80) --max;
  return text.substr(0, max);
}

// Names the request and its error.
BytePieces FailureBytes(const inference::ModelInferRequest& request, const absl::Status& why) {
  inference::ModelStreamInferResponse message;
  message.set_error_message(std::string(Beginning(kMaxError, why.message())));
  inference::ModelInferResponse& response = *message.mutable_infer_response();
  response.set_id(UpTo(kMaxInferId, request.id()));
  response.set_model_name(UpTo(kMaxModelName, request.model_name()));
  response.set_model_version(UpTo(kMaxVersion, request.model_version()));
  (*response.mutable_parameters())[kFinalResponse].set_bool_param(true);
  return SerializeMessage(message);
}

}  // namespace

void InferenceStream::OnArrival() {
  errors_end_it_ = FirstOf(ValuesOf(start().metadata, kErrorsEndIt)) == "true";
}

void InferenceStream::Take(const std::shared_ptr<Slot>& slot, BytePieces message) {
  const CallScope scope(ObserversOf(*server_.pipeline), start(), kMethod, server_.clock->Now());
  scope.AddReceived(message.size());
  const auto request = std::make_shared<InferenceRequest>();
  absl::Status received = server_.pipeline->CountStreamed(slot->index, scope.client());
  if (received.ok()) {
    received = ReadInferenceRequest(std::move(message), *request, server_.pipeline->deps().admission,
                                    scope.client());
  } else {
    request->fields = NamesOf(message);
  }
  const auto version_of = [this](absl::string_view model, absl::string_view version) {
    return server_.inference->VersionOf(model, version);
  };
  auto call = received.ok()
                  ? FromMessage(*request, *server_.shared_memory, version_of, scope.arrival(),
                                scope.deadline(), scope.client(), server_.pipeline->deps().admission)
                  : absl::StatusOr<TensorCall>(received);
  if (!call.ok()) {
    server_.pipeline->CountMalformed("oip", call.status().code());
    Answer(slot, request, call.status(), scope);
    return;
  }
  scope.Describe(*call);
  call->charged_bytes += static_cast<int64_t>(request->received.size());
  call->cancellation = slot->cancellation;
  const auto asked = std::make_shared<const AskedTensors>(AskedOf(scope, *call));
  const auto answer = [this, stream = shared_from_this(), slot, request,
                       scope](absl::StatusOr<TensorAnswer> outcome) {
    Answer(slot, request, std::move(outcome), scope);
  };
  server_.inference->Infer(*std::move(call),
                           [this, asked, answer, scope](absl::StatusOr<TensorAnswer> outcome) {
                             AttestOn(server_.pool, scope, asked, std::move(outcome), answer);
                           });
}

void InferenceStream::Reject(const std::shared_ptr<Slot>& slot, const BytePieces& message,
                             const absl::Status& why) {
  const CallScope scope(ObserversOf(*server_.pipeline), start(), kMethod, server_.clock->Now());
  absl::Status counted = server_.pipeline->CountStreamed(slot->index, scope.client());
  if (counted.ok()) {
    counted = why;
    CountShed(*server_.pipeline->deps().metrics, /*nested=*/false, counted);
  }
  const auto request = std::make_shared<InferenceRequest>();
  request->fields = NamesOf(message);
  Answer(slot, request, std::move(counted), scope);
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
                             absl::StatusOr<TensorAnswer> outcome, const CallScope& scope) {
  auto answer = ToFinalAnswer(request, std::move(outcome));
  const absl::Status status = answer.status();
  BytePieces bytes = status.ok() ? ToStreamBytes(*std::move(answer)) : FailureBytes(request->fields, status);
  scope.End(status, request->received, bytes, request->fields.model_name(), request->fields.id());
  if (!status.ok() && errors_end_it_) Stop(ToCallEnd(status));
  Send(slot, std::move(bytes), /*keeps_request=*/status.ok());
}

}  // namespace saccade::server
