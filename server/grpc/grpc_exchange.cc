#include "server/grpc/grpc_exchange.h"

#include <algorithm>
#include <new>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/core/charged_pieces.h"
#include "server/grpc/load_report.h"
#include "server/http/head_memory.h"

namespace saccade::server {
namespace {

// The client's window is extended when at least so many bytes of it were used: in fewer steps.
constexpr uint64_t kWindowStep = Exchange::kFirstBodyBytes / 2;
// A timer that runs so much too late shows that the process did not run; bytes may wait in the socket.
constexpr absl::Duration kStall = absl::Milliseconds(200);
// Time after its deadline for which a call may wait for a client that does not read.
constexpr absl::Duration kResetAfterDeadline = absl::Seconds(1);
// A message is decompressed so far as soon as it has come, which takes about 0.1 ms. Many may come at once.
constexpr size_t kInflatedAtOnce = size_t{16} << 10;

MessageReader::Options ReaderOptions(const GrpcCall::Setup& setup) {
  const bool is_small = setup.max_message_bytes > 0;
  const int64_t max_bytes = setup.options->max_message_bytes;
  return {.encoding = setup.encoding,
          .bounds = {.max_message_bytes = is_small ? std::min(max_bytes, setup.max_message_bytes) : max_bytes,
                     .max_ratio = setup.options->max_compression_ratio,
                     .max_growth_bytes = std::min(setup.options->max_growth_bytes, setup.max_growth_bytes),
                     .is_of_method = is_small && setup.max_message_bytes <= max_bytes},
          .account = {setup.options->ledger, setup.start->client},
          .messages_are_charged = is_small,
          .refuses_more = is_small && !setup.one_message};
}

absl::Status TooSlow(const MessageReader& reader, absl::Duration took, int64_t min_bytes_per_second) {
  return absl::DeadlineExceededError(absl::StrCat("a message came too slowly: ", reader.received(), " of ",
                                                  reader.received() + reader.missing(), " bytes in ",
                                                  absl::FormatDuration(took), "; at least ",
                                                  min_bytes_per_second, " bytes a second are expected"));
}

}  // namespace

GrpcCall::GrpcCall(Setup setup, Exchange* exchange)
    : setup_(std::move(setup)),
      loop_(&exchange->loop()),
      exchange_(exchange),
      reader_(ReaderOptions(setup_)),
      response_(setup_.form),
      body_ended_(!exchange->head().has_body),
      upload_timer_(&loop_->timers(), [this] { RunTimer(&GrpcCall::OnUploadDue); }),
      deadline_timer_(&loop_->timers(), [this] { RunTimer(&GrpcCall::OnDeadline); }),
      reset_timer_(&loop_->timers(), [this] { OnUnread(); }) {
  if (body_ended_) reader_.End();
}

void GrpcCall::Begin(std::shared_ptr<CallHandler> handler) {
  handler_ = std::move(handler);
  deadline_timer_.Set(setup_.start->deadline);
  WatchUpload();
  // After the timers, for which there may be no memory.
  self_ = shared_from_this();
  busy_ = true;
  Invoke([this](CallHandler& told) { told.OnStart(this); });
  busy_ = false;
  Pump();
}

template <typename Action>
void GrpcCall::Run(Action action) {
  // An action must not overtake an earlier one that another thread has posted.
  if (!loop_->IsCurrent() || posted_actions_.load() > 0) {
    posted_actions_.fetch_add(1);
    absl::Cleanup not_posted = [this] { posted_actions_.fetch_sub(1); };
    loop_->Post([self = shared_from_this(), action = std::move(action)]() mutable {
      self->posted_actions_.fetch_sub(1);
      self->Act(action);
      self->Pump();
    });
    std::move(not_posted).Cancel();
    return;
  }
  const bool within_callback = busy_;
  const bool due = Act(action);
  // Pump() goes on after the handler's callback.
  if (within_callback) return;
  if (std::exchange(pump_due_, false) || due) PostPump();
}

template <typename Action>
bool GrpcCall::Act(Action& action) {
  const bool was_busy = std::exchange(busy_, true);
  const absl::Cleanup restore = [this, was_busy] { busy_ = was_busy; };
  try {
    return action(*this);
  } catch (...) {
    FailByException();
    return true;
  }
}

void GrpcCall::Read() {
  Run([](GrpcCall& call) { return call.DoRead(); });
}

void GrpcCall::Send(BytePieces message) {
  Run([message = std::move(message)](GrpcCall& call) mutable { return call.DoSend(std::move(message)); });
}

void GrpcCall::Finish(CallEnd end) {
  Run([end = std::move(end)](GrpcCall& call) { return call.DoFinish(end); });
}

void GrpcCall::SendAndFinish(BytePieces message, CallEnd end) {
  Run([message = std::move(message), end = std::move(end)](GrpcCall& call) mutable {
    call.DoSend(std::move(message));
    return call.DoFinish(end);
  });
}

bool GrpcCall::DoRead() {
  read_pending_ = true;
  if (!open()) return false;
  reader_.Want();
  AllowBody();
  WatchUpload();
  return true;
}

bool GrpcCall::DoSend(BytePieces message) {
  send_pending_ = true;
  if (!open()) return true;
  if (message.size() > static_cast<uint64_t>(options().max_message_bytes)) {
    Fail(absl::ResourceExhaustedError(absl::StrCat(
        "the response has ", message.size(), " bytes, more than the ", options().max_message_bytes,
        " of --max-message-bytes; ask for less, or start the server with a larger bound")));
    return true;
  }
  absl::Status sent = ChargeAnswer(&message);
  if (sent.ok())
    sent = response_.SendMessage(exchange_, std::move(message), {options().ledger, setup_.start->client});
  if (!sent.ok()) Fail({sent, Refusal::kBytes});
  return !sent.ok();
}

absl::Status GrpcCall::ChargeAnswer(BytePieces* message) const {
  if (setup_.charges_answers || message->size() <= kUnchargedAnswerBytes) return absl::OkStatus();
  auto charge = MessageAccount{options().ledger, setup_.start->client}.Charge(message->size());
  if (!charge.ok()) return charge.status();
  *message = WithCharge(std::move(*message), *std::move(charge));
  return absl::OkStatus();
}

bool GrpcCall::DoFinish(const CallEnd& end) {
  finished_ = true;
  StopReading();
  if (open()) {
    ended_ = true;
    CallEnd whole = end;
    AddLoadReport(options(), start(), &whole);
    SendEnd(whole);
  }
  return exchange_ == nullptr;
}

void GrpcCall::SendEnd(const CallEnd& end) {
  response_.SendEnd(exchange_, end);
  end_sent_ = true;
  if (exchange_ != nullptr && setup_.max_client_wait < absl::InfiniteDuration())
    reset_timer_.Set(loop_->Now() + setup_.max_client_wait);
}

void GrpcCall::OnBody(absl::string_view bytes) {
  received_ += bytes.size();
  if (!open()) return;
  if (setup_.form == GrpcForm::kWebText) {
    std::string decoded;
    if (text_.Decode(bytes, decoded)) {
      reader_.Add(decoded);
    } else {
      Fail({absl::InternalError("the body is not base64, as application/grpc-web-text says"),
            Refusal::kMalformed});
    }
  } else {
    reader_.Add(bytes);
  }
  if (open()) {
    AllowBody();
    WatchUpload();
  }
  Pump();
}

void GrpcCall::OnBodyEnd() {
  body_ended_ = true;
  if (!open()) return;
  reader_.End();
  if (!text_.complete()) {
    Fail({absl::InternalError("the body's base64 ends within a group of four"), Refusal::kMalformed});
  } else {
    WatchUpload();
  }
  Pump();
}

void GrpcCall::OnOver() {
  exchange_ = nullptr;
  reset_timer_.Cancel();
  StopReading();
  if (!finished_ && !ended_) cancel_due_ = true;
  Pump();
}

bool GrpcCall::OnShutdown() {
  // An end that was sent must reach the client.
  if (!open()) return true;
  // A call with one message is not begun before that is complete.
  if (setup_.one_message || !has_message_) return false;
  if (std::exchange(shuts_down_, true)) return true;
  shutdown_due_ = true;
  PostPump();
  return true;
}

void GrpcCall::ShutDown() {
  // The same status as admission returns during a drain.
  const absl::Status status =
      absl::UnavailableError("the server is shutting down and accepts no more requests; try another replica");
  const CallEnd end = EndOf(status);
  bool ends_itself = false;
  Invoke([&](CallHandler& handler) { ends_itself = handler.OnShutdown(end); });
  if (!ends_itself) Fail(status);
}

// The message that was asked for may come, and as much beyond it as at the beginning.
void GrpcCall::AllowBody() {
  if (body_ended_) return;
  uint64_t missing = reader_.begun() ? reader_.missing() : 0;
  if (setup_.form == GrpcForm::kWebText) missing = (missing + 2) / 3 * 4;
  constexpr uint64_t kBeyond = Exchange::kFirstBodyBytes;
  // After the only message, the client sends nothing but the end of its stream.
  const uint64_t beyond = setup_.one_message ? 0 : kBeyond - std::min<uint64_t>(reader_.ahead(), kBeyond);
  const uint64_t total = received_ + missing + beyond;
  const bool is_needed = received_ + missing > allowed_;
  if (!is_needed && total < allowed_ + kWindowStep) return;
  allowed_ = total;
  exchange_->AllowBody(allowed_);
}

void GrpcCall::WatchUpload() {
  Upload expected = Upload::kNothing;
  if (!body_ended_ && reader_.begun()) {
    expected = Upload::kMessage;
  } else if (!body_ended_ && (setup_.one_message || (setup_.max_message_bytes > 0 && !has_message_))) {
    expected = Upload::kSomething;
  }
  if (expected == upload_) return;
  upload_ = expected;
  switch (expected) {
    case Upload::kNothing:
      upload_timer_.Cancel();
      break;
    case Upload::kMessage:
      message_begin_ = loop_->Now();
      SetUploadTimer(message_begin_ + options().message_grace);
      break;
    case Upload::kSomething:
      SetUploadTimer(loop_->Now() + MaxSilence());
      break;
  }
}

void GrpcCall::SetUploadTimer(absl::Time due) {
  upload_due_ = due;
  upload_timer_.Set(due);
}

void GrpcCall::RunTimer(void (GrpcCall::*due)()) {
  try {
    (this->*due)();
  } catch (...) {
    FailByException();
    Pump();
  }
}

void GrpcCall::OnUploadDue() {
  // The client is not to blame for it: it gets the grace once more.
  const absl::Duration late = loop_->Now() - upload_due_;
  if (late > kStall) {
    message_begin_ += late;
    SetUploadTimer(loop_->Now() + options().message_grace);
    return;
  }
  if (upload_ == Upload::kMessage) {
    // The bytes that have come since the timer was set may give the client more time.
    const absl::Time due = message_begin_ + options().message_grace +
                           absl::Seconds(1) * (static_cast<double>(reader_.received()) /
                                               static_cast<double>(options().min_bytes_per_second));
    if (due > loop_->Now()) {
      SetUploadTimer(due);
      return;
    }
    Fail({TooSlow(reader_, loop_->Now() - message_begin_, options().min_bytes_per_second),
          Refusal::kStalledUpload});
  } else {
    const std::string within = absl::FormatDuration(MaxSilence());
    Fail({absl::DeadlineExceededError(
              setup_.one_message
                  ? absl::StrCat("the call's message and its end did not come within ", within,
                                 "; send both at once")
                  : absl::StrCat("the call's message did not come within ", within, "; send it at once")),
          Refusal::kStalledUpload});
  }
  Pump();
}

void GrpcCall::OnDeadline() {
  if (!open() || finished_) return;
  const bool waits = exchange_->unsent() > 0;
  Fail(absl::DeadlineExceededError("Deadline Exceeded"));
  // The end has to wait for the client to read. A client whose clock is a little behind would take a reset at
  // the deadline for a cancellation.
  if (waits) reset_timer_.Set(loop_->Now() + kResetAfterDeadline);
  Pump();
}

void GrpcCall::OnUnread() {
  if (setup_.max_client_wait < absl::InfiniteDuration() && options().refusals != nullptr) {
    options().refusals->Count(Refusal::kStalledDownload);
    options().refusals->CountCut(1);
  }
  exchange_->Reset(ExchangeError::kCancelled);
}

void GrpcCall::Fail(const MessageFailure& failure) {
  if (options().refusals != nullptr) options().refusals->Count(failure.refusal);
  Fail(failure.status);
}

void GrpcCall::Fail(const absl::Status& status) {
  if (!open()) return;
  ended_ = true;
  cancel_due_ = !finished_;
  cancel_code_ = status.code();
  StopReading();
  SendEnd(EndOf(status));
}

CallEnd GrpcCall::EndOf(const absl::Status& status) const {
  return options().to_end != nullptr ? options().to_end(status) : CallEnd{status};
}

void GrpcCall::FailByException() {
  try {
    Fail(absl::InternalError("the server failed to handle the call because of an error of its own"));
  } catch (...) {
    // No memory for the error message; the stream is reset below.
  }
  if (exchange_ == nullptr || std::exchange(end_sent_, true)) return;
  if (!std::exchange(ended_, true)) cancel_due_ = !finished_;
  StopReading();
  exchange_->Reset(ExchangeError::kInternal);
}

void GrpcCall::StopReading() {
  reader_.Clear();
  upload_ = Upload::kNothing;
  upload_timer_.Cancel();
  deadline_timer_.Cancel();
}

void GrpcCall::PostPump() {
  try {
    loop_->Post([self = shared_from_this()] { self->Pump(); });
  } catch (const std::bad_alloc&) {
    // Without an exchange nothing else pumps, and the caller tries again. Else OnOver() pumps.
    if (exchange_ == nullptr) throw;
    exchange_->Reset(ExchangeError::kInternal);
  }
}

void GrpcCall::Pump() {
  if (busy_) {
    pump_due_ = true;
    return;
  }
  const std::shared_ptr<GrpcCall> self = shared_from_this();
  busy_ = true;
  const absl::Cleanup idle = [this] { busy_ = false; };
  for (bool goes_on = true, failed = false; goes_on;) {
    try {
      goes_on = Step();
    } catch (...) {
      FailByException();
      goes_on = !std::exchange(failed, true);
    }
  }
  pump_due_ = false;
}

bool GrpcCall::Step() {
  if (handler_ == nullptr) return false;
  if (finished_) {
    if (exchange_ == nullptr) Done();
    return false;
  }
  if (std::exchange(cancel_due_, false)) {
    Invoke([](CallHandler& handler) { handler.OnCancel(); });
    return true;
  }
  const bool is_open = open();
  if (std::exchange(shutdown_due_, false) && is_open) {
    ShutDown();
    return true;
  }
  if (send_pending_ && (!is_open || exchange_->unsent() == 0)) {
    send_pending_ = false;
    Invoke([is_open](CallHandler& handler) { handler.OnSent(is_open); });
    return true;
  }
  return is_open && (read_pending_ || reader_.failed()) && StepRead();
}

bool GrpcCall::StepRead() {
  const bool has_turn = std::exchange(has_turn_, false);
  if (work_posted_ && !reader_.failed()) return false;
  switch (reader_.Advance(has_turn ? MessageInflater::kStepBytes : kInflatedAtOnce)) {
    case MessageReader::State::kWaiting:
      return false;
    case MessageReader::State::kWorking:
      if (!std::exchange(work_posted_, true)) {
        loop_->PostSlow([self = shared_from_this()] {
          self->work_posted_ = false;
          self->has_turn_ = true;
          self->Pump();
        });
      }
      return false;
    case MessageReader::State::kMessage:
      read_pending_ = false;
      has_message_ = true;
      WatchUpload();
      Invoke([message = reader_.TakeMessage()](CallHandler& handler) mutable {
        handler.OnMessage(std::move(message));
      });
      return true;
    case MessageReader::State::kEnd:
      read_pending_ = false;
      Invoke([](CallHandler& handler) { handler.OnHalfClose(); });
      return true;
    case MessageReader::State::kFailed:
      Fail(MessageFailure(reader_.failure()));
      return true;
  }
  return false;
}

template <typename Action>
void GrpcCall::Invoke(Action action) {
  try {
    action(*handler_);
  } catch (...) {
    FailByException();
  }
}

void GrpcCall::Done() {
  const std::shared_ptr<CallHandler> handler = std::move(handler_);
  try {
    handler->OnDone();
  } catch (...) {
    // The call has ended already.
  }
  self_.reset();
}

}  // namespace saccade::server
