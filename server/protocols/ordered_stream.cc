#include "server/protocols/ordered_stream.h"

#include <exception>
#include <utility>
#include <vector>

#include "server/core/charged_pieces.h"
#include "server/engine/answer_charge.h"
#include "server/logging/log.h"
#include "server/protocols/grpc_status.h"
#include "server/protocols/input_method.h"

namespace saccade::server {

void OrderedStream::OnMessage(BytePieces message) {
  const auto listed = std::make_shared<Slot>();
  {
    const absl::MutexLock lock(&mutex_);
    if (stopped_) return;
    slots_.push_back(listed);
    listed->index = next_index_++;
    listed->bytes = static_cast<int64_t>(message.size());
    bytes_ += listed->bytes;
    ++pending_;
  }
  const std::shared_ptr<Slot> slot = AnswererOf(listed);
  TakeSafely(slot, [&] {
    // Most messages are small, and are read here without a task.
    const size_t bytes = shared_.pool == nullptr ? 0 : BytesToParse(message);
    if (bytes <= kMaxBytesParsedHere) return TakeNow(slot, std::move(message));
    // Shared, because a pool without room destroys its task.
    const auto kept = std::make_shared<BytePieces>(std::move(message));
    const auto read = [this, stream = shared_from_this(), slot, kept] { TakeNow(slot, std::move(*kept)); };
    const absl::Status taken = ReadMessageOn(shared_.pool, start().client, bytes, read);
    if (taken.ok()) return;
    Reject(slot, *kept, taken);
    ReadOn();
  });
}

void OrderedStream::TakeNow(const std::shared_ptr<Slot>& slot, BytePieces message) {
  TakeSafely(slot, [&] {
    // The stream may have ended while the message waited for the pool.
    if (slot->cancellation->cancelled()) {
      Send(slot, BytePieces());
    } else {
      Take(slot, std::move(message));
    }
    ReadOn();
  });
}

void OrderedStream::TakeSafely(const std::shared_ptr<Slot>& slot, absl::FunctionRef<void()> take) {
  try {
    take();
  } catch (...) {
    Abandon(slot);
  }
}

std::shared_ptr<OrderedStream::Slot> OrderedStream::AnswererOf(const std::shared_ptr<Slot>& slot) {
  // Once the stream is destroyed, nothing waits for the answer.
  const auto drop = [this, weak = weak_from_this(), slot](Slot* /*dropped*/) {
    const std::shared_ptr<DrivenCall> stream = weak.lock();
    if (stream == nullptr || IsAnswered(*slot)) return;
    try {
      Abandon(slot);
    } catch (const std::exception& error) {
      Log(LogLevel::kError, "a stream could not be ended", {{"error", absl::string_view(error.what())}});
    }
  };
  return {slot.get(), drop};
}

bool OrderedStream::IsAnswered(const Slot& slot) {
  const absl::MutexLock lock(&mutex_);
  return slot.is_answered;
}

// The next message is read only after one was taken, so that requests are admitted in their order.
void OrderedStream::ReadOn() {
  {
    const absl::MutexLock lock(&mutex_);
    reading_ = false;
  }
  Proceed();
}

void OrderedStream::Abandon(const std::shared_ptr<Slot>& slot) {
  Stop({.status = OwnError()});
  Send(slot, BytePieces());
  // Send() does nothing if the request was answered before the error.
  Proceed();
}

void OrderedStream::OnHalfClose() {
  {
    const absl::MutexLock lock(&mutex_);
    reading_ = false;
    reads_ended_ = true;
  }
  Proceed();
}

absl::Status OrderedStream::ChargeAnswer(BytePieces* answer) const {
  if (shared_.ledger == nullptr || answer->size() == 0 ||
      static_cast<int64_t>(answer->size()) >= kLargeAnswer)
    return absl::OkStatus();
  auto charge = shared_.ledger->Charge(start().client, static_cast<int64_t>(answer->size()));
  if (!charge.ok()) return charge.status();
  *answer = WithCharge(std::move(*answer), *std::move(charge));
  return absl::OkStatus();
}

void OrderedStream::Send(const std::shared_ptr<Slot>& slot, BytePieces answer, bool keeps_request) {
  bool waits = false;
  {
    const absl::MutexLock lock(&mutex_);
    if (slot->is_answered) return;
    waits = sending_ || slots_.empty() || slots_.front() != slot;
  }
  if (waits) {
    if (absl::Status charged = ChargeAnswer(&answer); !charged.ok()) Stop(ToCallEnd(charged));
  }
  {
    const absl::MutexLock lock(&mutex_);
    if (std::exchange(slot->is_answered, true)) return;
    --pending_;
    // A stopped stream has dropped its slots.
    if (!stopped_) {
      const auto size = static_cast<int64_t>(answer.size());
      const int64_t released = keeps_request ? 0 : slot->bytes;
      slot->bytes += size - released;
      bytes_ += size - released;
      slot->answer = std::move(answer);
    }
  }
  Proceed();
}

void OrderedStream::OnSent(bool ok) {
  if (!ok) Stop({.status = Cancelled("the stream cannot be written to")});
  {
    const absl::MutexLock lock(&mutex_);
    sending_ = false;
    bytes_ -= std::exchange(sending_bytes_, 0);
  }
  Proceed();
}

void OrderedStream::OnCancel() {
  Stop({.status = Cancelled("the client cancelled the call, or its deadline has passed")});
  Proceed();
}

bool OrderedStream::OnShutdown(const CallEnd& end) {
  {
    const absl::MutexLock lock(&mutex_);
    shutdown_ = end;
  }
  Proceed();
  return true;
}

void OrderedStream::Stop(CallEnd end) {
  {
    const absl::MutexLock lock(&mutex_);
    if (stopped_) return;
    stopped_ = std::move(end);
    bytes_ = sending_bytes_;
  }
  // One by one, which takes no memory.
  while (const std::shared_ptr<Slot> slot = TakeFirst()) {
    slot->cancellation->Cancel();
    // No other function looks at the answers of a stopped stream.
    slot->answer.reset();
  }
}

std::shared_ptr<OrderedStream::Slot> OrderedStream::TakeFirst() {
  const absl::MutexLock lock(&mutex_);
  if (slots_.empty()) return nullptr;
  std::shared_ptr<Slot> first = std::move(slots_.front());
  slots_.pop_front();
  return first;
}

bool OrderedStream::HasRoom() const {
  const auto requests = static_cast<int64_t>(slots_.size()) + (sending_ ? 1 : 0);
  return requests < bounds_.max_requests && bytes_ < bounds_.max_bytes;
}

OrderedStream::Action OrderedStream::NextAction() {
  if (stopped_) {
    if (pending_ > 0) return {};
    return *std::move(stopped_);
  }
  if (!sending_ && !slots_.empty() && slots_.front()->answer) {
    Slot& slot = *slots_.front();
    sending_ = true;
    sending_bytes_ = slot.bytes;
    BytePieces answer = *std::exchange(slot.answer, std::nullopt);
    slots_.pop_front();
    return answer;
  }
  if (!reading_ && !reads_ended_ && !shutdown_ && HasRoom()) {
    reading_ = true;
    return ReadMessage();
  }
  // The last answer may still be under way: the end follows it.
  if (reads_ended_ && slots_.empty()) return CallEnd();
  if (shutdown_ && slots_.empty()) return *std::move(shutdown_);
  return {};
}

}  // namespace saccade::server
