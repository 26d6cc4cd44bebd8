#include "server/protocols/ordered_stream.h"

#include <utility>
#include <vector>

#include "server/protocols/predict_reactor.h"

namespace saccade::server {

OrderedStream::OrderedStream(Bounds bounds, SlowReaders* slow_readers, grpc::CallbackServerContext* context)
    : bounds_(bounds), slow_readers_(slow_readers), context_(context), deadline_(DeadlineOf(*context)) {}

void OrderedStream::Begin() {
  self_ = shared_from_this();
  Proceed();
}

void OrderedStream::OnReadDone(bool ok) {
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

void OrderedStream::Send(const std::shared_ptr<Slot>& slot, const grpc::ByteBuffer& answer,
                         std::shared_ptr<const AnswerCharge> charge) {
  {
    const absl::MutexLock lock(&mutex_);
    --pending_;
    // Of a request that is not kept, only the answer is left to hold.
    if (slot->request == nullptr) bytes_ -= std::exchange(slot->bytes, 0);
    const auto size = static_cast<int64_t>(answer.Length());
    slot->bytes += size;
    bytes_ += size;
    slot->charge = std::move(charge);
    slot->answer = answer;
  }
  Proceed();
}

void OrderedStream::OnWriteDone(bool ok) {
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
  if (watched) slow_readers_->Forget(context_->c_call());
  Proceed();
}

void OrderedStream::OnCancel() {
  Stop(grpc::Status::CANCELLED);
  Proceed();
}

void OrderedStream::Stop(const grpc::Status& status) {
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

void OrderedStream::Proceed() {
  const std::shared_ptr<OrderedStream> keep = shared_from_this();
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

OrderedStream::Action OrderedStream::NextAction() {
  if (ended_) return Action::kNone;
  if (!stopped_ && !writing_ && !slots_.empty() && slots_.front()->answer) {
    writing_ = true;
    sending_.Swap(&*slots_.front()->answer);
    watched_ = slots_.front()->charge != nullptr;
    return Action::kWrite;
  }
  const bool has_room =
      static_cast<int64_t>(slots_.size()) < bounds_.max_requests && bytes_ < bounds_.max_bytes;
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

void OrderedStream::Do(Action action) {
  switch (action) {
    case Action::kWrite: {
      bool watched = false;
      {
        const absl::MutexLock lock(&mutex_);
        watched = watched_;
      }
      if (watched) slow_readers_->Watch(context_->c_call());
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
