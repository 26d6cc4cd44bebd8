#include "server/protocols/vision_stream.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "saccade/v1/vision.grpc.pb.h"
#include "server/core/cancellation.h"
#include "server/protocols/peer.h"
#include "server/protocols/predict_reactor.h"
#include "server/protocols/vision_items.h"
#include "server/protocols/vision_messages.h"
#include "server/protocols/vision_results.h"
#include "server/protocols/vision_versions.h"

namespace saccade::server {
namespace {

// What goes around an answer: its index, its request's id, lengths.
constexpr int64_t kAroundAnswer = 256;

grpc::ByteBuffer Serialised(const v1::PredictStreamResponse& message) {
  const grpc::Slice slice(message.SerializeAsString());
  return {&slice, 1};
}

}  // namespace

struct VisionStream::Slot {
  int64_t index = 0;
  // Its pictures are pointed into until it is answered.
  v1::PredictStreamRequest request = {};
  const std::shared_ptr<Cancellation> cancellation = std::make_shared<Cancellation>();
  grpc::ByteBuffer received = {};
  // The rest is the stream's mutex's.
  int64_t bytes = 0;
  // As Response has it, until the answer is sent.
  std::shared_ptr<const void> room = nullptr;
  std::optional<grpc::ByteBuffer> answer = std::nullopt;
};

VisionStream* VisionStream::Start(const Server& server, grpc::CallbackServerContext* context) {
  const std::shared_ptr<VisionStream> stream(new VisionStream(server, context));
  stream->self_ = stream;
  stream->Proceed();
  return stream.get();
}

VisionStream::VisionStream(const Server& server, grpc::CallbackServerContext* context)
    : server_(server), context_(context), deadline_(DeadlineOf(*context)) {}

void VisionStream::OnReadDone(bool ok) {
  std::shared_ptr<Slot> slot;
  {
    const absl::MutexLock lock(&mutex_);
    if (!ok) {
      reading_ = false;
      reads_ended_ = true;
    } else if (!stopped_) {
      slot = std::make_shared<Slot>();
      slot->index = next_index_++;
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

void VisionStream::Take(const std::shared_ptr<Slot>& slot) {
  auto request = ReadRequest(*slot, server_.clock->Now());
  if (!request.ok()) {
    server_.pipeline->CountMalformed("grpc", request.status().code());
    Answer(slot, request.status());
    return;
  }
  server_.pipeline->Predict(*std::move(request),
                            [stream = shared_from_this(), slot](const absl::StatusOr<Response>& outcome) {
                              stream->Answer(slot, outcome);
                            });
}

absl::StatusOr<Request> VisionStream::ReadRequest(Slot& slot, absl::Time arrival) const {
  const grpc::Status parsed =
      grpc::SerializationTraits<v1::PredictStreamRequest>::Deserialize(&slot.received, &slot.request);
  if (!parsed.ok()) {
    return absl::InvalidArgumentError(
        "the message is no saccade.v1.PredictStreamRequest: it cannot be parsed; is it made from another "
        "vision.proto?");
  }
  auto timeout = TimeoutOf(slot.request);
  if (!timeout.ok()) return timeout.status();
  auto request = RequestOf(*server_.catalog, slot.request.request());
  if (!request.ok()) return request.status();
  request->client = ClientOfPeer(context_->peer());
  request->arrival = arrival;
  request->deadline = std::min(deadline_, arrival + *timeout);
  request->cancellation = slot.cancellation;
  return request;
}

void VisionStream::Answer(const std::shared_ptr<Slot>& slot, const absl::StatusOr<Response>& outcome) {
  const v1::PredictRequest& request = slot->request.request();
  v1::PredictStreamResponse message;
  message.set_index(slot->index);
  // A longer one was refused for being so.
  if (request.request_id().size() <= kMostRequestId) message.set_request_id(request.request_id());
  const absl::Status made =
      SetAnswer(outcome, request, server_.max_message_bytes, message.mutable_answer(), kAroundAnswer);
  if (!made.ok()) SetItemError(made, server_.retry_jitter, message.mutable_error());
  grpc::ByteBuffer bytes = Serialised(message);
  {
    const absl::MutexLock lock(&mutex_);
    --pending_;
    // What was sent is not needed while the answer waits for its turn.
    bytes_ -= slot->bytes;
    slot->request.Clear();
    slot->bytes = static_cast<int64_t>(bytes.Length());
    bytes_ += slot->bytes;
    if (outcome.ok()) slot->room = outcome->room;
    slot->answer = std::move(bytes);
  }
  Proceed();
}

void VisionStream::OnWriteDone(bool ok) {
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

void VisionStream::OnCancel() {
  Stop(grpc::Status::CANCELLED);
  Proceed();
}

void VisionStream::Stop(const grpc::Status& status) {
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

void VisionStream::Proceed() {
  const std::shared_ptr<VisionStream> keep = shared_from_this();
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

VisionStream::Action VisionStream::NextAction() {
  if (ended_) return Action::kNone;
  if (!stopped_ && !writing_ && !slots_.empty() && slots_.front()->answer) {
    writing_ = true;
    sending_.Swap(&*slots_.front()->answer);
    watched_ = slots_.front()->room != nullptr;
    return Action::kWrite;
  }
  const bool has_room =
      static_cast<int64_t>(slots_.size()) < server_.most_requests && bytes_ < server_.max_message_bytes;
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

void VisionStream::Do(Action action) {
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
