#include "client/cpp/stream_call.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cpp/messages.h"

namespace saccade::client {

Stream::Call::Call(Options options, v1::Vision::Stub& stub) : options_(std::move(options)) {
  if (options_.stream.timeout < absl::InfiniteDuration()) {
    context_.set_deadline(absl::ToChronoTime(absl::Now() + options_.stream.timeout));
  }
  options_.authorize(context_);
  stream_ = stub.PredictStream(&context_);
}

Stream::Call::~Call() {
  context_.TryCancel();
  // gRPC requires that every stream is read to its end and finished.
  if (!end_) {
    v1::PredictStreamResponse unread;
    while (stream_->Read(&unread)) {
    }
    stream_->Finish();
  }
}

absl::Status Stream::Call::Send(v1::PredictRequest request, absl::Time start) {
  const Sent sent{.start = start, .is_depth = request.has_stereo_options() && !request.has_stereo()};
  v1::PredictStreamRequest message;
  *message.mutable_request() = std::move(request);
  if (absl::Duration rest = options_.stream.item_timeout; rest < absl::InfiniteDuration()) {
    message.mutable_timeout()->set_seconds(absl::IDivDuration(rest, absl::Seconds(1), &rest));
    message.mutable_timeout()->set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(rest)));
  }
  if (absl::Status fits = CheckSize(message, options_.max_message_bytes); !fits.ok()) return fits;
  {
    const absl::MutexLock lock(&mutex_);
    sent_.push_back(sent);
  }
  if (stream_->Write(message)) return absl::OkStatus();
  return absl::UnavailableError(
      "the stream has ended, so nothing more can be sent on it; Next() returns the reason");
}

void Stream::Call::SendDone() { stream_->WritesDone(); }

absl::StatusOr<std::optional<StreamItem>> Stream::Call::Next() {
  v1::PredictStreamResponse message;
  if (!end_ && stream_->Read(&message)) {
    auto item = Read(message);
    if (item.ok()) return std::optional<StreamItem>(*std::move(item));
    // The response violates the protocol, so nothing on this stream can be trusted.
    context_.TryCancel();
    while (stream_->Read(&message)) {
    }
    stream_->Finish();
    end_ = item.status();
  }
  if (!end_) end_ = End();
  if (!end_->ok()) return *end_;
  return std::optional<StreamItem>();
}

absl::Status Stream::Call::End() {
  if (const grpc::Status ended = stream_->Finish(); !ended.ok()) return options_.explain(ended, context_);
  const absl::MutexLock lock(&mutex_);
  if (sent_.empty()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("the daemon ended the stream with ", sent_.size(),
                                             " requests unanswered, from index ", next_index_, " on"));
}

absl::StatusOr<StreamItem> Stream::Call::Read(const v1::PredictStreamResponse& message) {
  Sent sent;
  {
    const absl::MutexLock lock(&mutex_);
    if (message.index() != next_index_ || sent_.empty()) {
      return absl::InternalError(absl::StrCat("the daemon answered request ", message.index(),
                                              " of the stream; expected a response to request ",
                                              next_index_));
    }
    sent = sent_.front();
    sent_.pop_front();
  }
  ++next_index_;
  StreamItem item{
      message.index(), message.request_id(),
      message.has_answer() ? FromAnyResponse(message.answer(), sent.is_depth) : FromProto(message.error())};
  if (item.answer.ok()) {
    std::visit([&](auto& answer) { answer.timings.round_trip = absl::Now() - sent.start; }, *item.answer);
  }
  return item;
}

}  // namespace saccade::client
