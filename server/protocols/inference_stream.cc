#include "server/protocols/inference_stream.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/core/cancellation.h"
#include "server/protocols/grpc_status.h"
#include "server/protocols/inference_messages.h"
#include "server/protocols/inference_request.h"
#include "server/protocols/peer.h"
#include "server/protocols/predict_reactor.h"

namespace saccade::server {
namespace {

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

struct InferenceStream::Slot {
  // Its tensors may be pointed into until the answer is sent.
  const std::shared_ptr<InferenceRequest> request = std::make_shared<InferenceRequest>();
  const std::shared_ptr<Cancellation> cancellation = std::make_shared<Cancellation>();
  grpc::ByteBuffer received = {};
  // The rest is the stream's mutex's.
  int64_t bytes = 0;
  // As Response has it, until the answer is sent.
  std::shared_ptr<const void> room = nullptr;
  std::optional<grpc::ByteBuffer> answer = std::nullopt;
};

InferenceStream* InferenceStream::Start(const Server& server, grpc::CallbackServerContext* context) {
  const std::shared_ptr<InferenceStream> stream(new InferenceStream(server, context));
  stream->self_ = stream;
  stream->Proceed();
  return stream.get();
}

InferenceStream::InferenceStream(const Server& server, grpc::CallbackServerContext* context)
    : server_(server),
      context_(context),
      deadline_(DeadlineOf(*context)),
      errors_end_it_(WantsErrorsToEndIt(*context)) {}

void InferenceStream::OnReadDone(bool ok) {
  std::shared_ptr<Slot> slot;
  {
    const absl::MutexLock lock(&mutex_);
    if (!ok) {
      reading_ = false;
      reads_ended_ = true;
    } else if (!stopped_) {
      slot = std::make_shared<Slot>();
      slot->received.Swap(&received_);
      slot->bytes = static_cast<int64_t>(slot->received.Length());
      bytes_ += slot->bytes;
      ++pending_;
      slots_.push_back(slot);
    }
  }
  if (slot != nullptr) {
    Take(slot);
    // Not before: requests are to be admitted in their order.
    const absl::MutexLock lock(&mutex_);
    reading_ = false;
  }
  Proceed();
}

void InferenceStream::Take(const std::shared_ptr<Slot>& slot) {
  const absl::Time arrival = server_.clock->Now();
  const absl::Status received = ReadInferenceRequest(slot->received, *slot->request);
  const auto version_of = [this](absl::string_view model, absl::string_view version) {
    return server_.inference->VersionOf(model, version);
  };
  auto call = received.ok()
                  ? FromMessage(*slot->request, *server_.shared_memory, version_of, arrival, deadline_)
                  : absl::StatusOr<TensorCall>(received);
  if (!call.ok()) {
    server_.pipeline->CountMalformed("oip", call.status().code());
    Answer(slot, call.status());
    return;
  }
  call->client = ClientOfPeer(context_->peer());
  call->cancellation = slot->cancellation;
  server_.inference->Infer(*std::move(call),
                           [stream = shared_from_this(), slot](absl::StatusOr<TensorAnswer> outcome) {
                             stream->Answer(slot, std::move(outcome));
                           });
}

absl::StatusOr<InferenceAnswer> InferenceStream::ToFinalAnswer(const Slot& slot,
                                                               absl::StatusOr<TensorAnswer> outcome) const {
  if (!outcome.ok()) return outcome.status();
  InferenceAnswer answer = ToAnswer(*std::move(outcome), slot.request->fields.id());
  (*answer.fields.mutable_parameters())[kFinalResponse].set_bool_param(true);
  answer.source = slot.request;
  if (absl::Status fits = CheckSize(answer, server_.max_message_bytes); !fits.ok()) return fits;
  return answer;
}

void InferenceStream::Answer(const std::shared_ptr<Slot>& slot, absl::StatusOr<TensorAnswer> outcome) {
  std::shared_ptr<const void> room = outcome.ok() ? outcome->room : nullptr;
  auto answer = ToFinalAnswer(*slot, std::move(outcome));
  const absl::Status status = answer.status();
  grpc::ByteBuffer bytes =
      answer.ok() ? ToStreamBytes(*std::move(answer)) : FailureBytes(slot->request->fields, status);
  if (!status.ok() && errors_end_it_) Stop(ToGrpcStatus(status));
  {
    const absl::MutexLock lock(&mutex_);
    --pending_;
    const auto size = static_cast<int64_t>(bytes.Length());
    slot->bytes += size;
    bytes_ += size;
    slot->room = std::move(room);
    slot->answer = std::move(bytes);
  }
  Proceed();
}

void InferenceStream::OnWriteDone(bool ok) {
  // The client is gone.
  if (!ok) Stop(grpc::Status(grpc::StatusCode::CANCELLED, "the stream cannot be written to"));
  bool watched = false;
  {
    const absl::MutexLock lock(&mutex_);
    watched = std::exchange(watched_, false);
    writing_ = false;
    sending_.Clear();
    bytes_ -= slots_.front()->bytes;
    slots_.pop_front();
  }
  if (watched) server_.slow_readers->Forget(context_->c_call());
  Proceed();
}

void InferenceStream::OnCancel() {
  Stop(grpc::Status::CANCELLED);
  Proceed();
}

void InferenceStream::Stop(const grpc::Status& status) {
  std::vector<std::shared_ptr<Cancellation>> cancelled;
  {
    const absl::MutexLock lock(&mutex_);
    if (stopped_) return;
    stopped_ = true;
    status_ = status;
    for (const auto& slot : slots_) cancelled.push_back(slot->cancellation);
  }
  for (const auto& cancellation : cancelled) cancellation->Cancel();
}

void InferenceStream::Proceed() {
  const std::shared_ptr<InferenceStream> keep = shared_from_this();
  for (;;) {
    Action action = Action::kNone;
    {
      const absl::MutexLock lock(&mutex_);
      // Whoever acts looks again.
      if (acting_) return;
      action = NextAction();
      if (action == Action::kNone) return;
      acting_ = true;
    }
    Do(action);
    const absl::MutexLock lock(&mutex_);
    acting_ = false;
  }
}

InferenceStream::Action InferenceStream::NextAction() {
  if (ended_) return Action::kNone;
  if (!stopped_ && !writing_ && !slots_.empty() && slots_.front()->answer) {
    writing_ = true;
    sending_.Swap(&*slots_.front()->answer);
    watched_ = slots_.front()->room != nullptr;
    return Action::kWrite;
  }
  const bool has_room = slots_.size() < kMostRequests && bytes_ < server_.max_message_bytes;
  if (!stopped_ && !reading_ && !reads_ended_ && has_room) {
    reading_ = true;
    return Action::kRead;
  }
  const bool is_answered = reads_ended_ && slots_.empty();
  if (pending_ == 0 && !writing_ && (stopped_ || is_answered)) {
    ended_ = true;
    return Action::kFinish;
  }
  return Action::kNone;
}

void InferenceStream::Do(Action action) {
  switch (action) {
    case Action::kWrite: {
      bool watched = false;
      {
        const absl::MutexLock lock(&mutex_);
        watched = watched_;
      }
      if (watched) server_.slow_readers->Watch(context_->c_call());
      StartWrite(&sending_);
      return;
    }
    case Action::kRead:
      StartRead(&received_);
      return;
    case Action::kFinish: {
      grpc::Status status;
      {
        const absl::MutexLock lock(&mutex_);
        status = status_;
      }
      Finish(status);
      return;
    }
    case Action::kNone:
      return;
  }
}

}  // namespace saccade::server
