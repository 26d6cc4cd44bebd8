// One gRPC call over one exchange.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/grpc/call.h"
#include "server/grpc/grpc_handler.h"
#include "server/grpc/grpc_response.h"
#include "server/grpc/grpc_web.h"
#include "server/grpc/message_encoding.h"
#include "server/grpc/message_reader.h"
#include "server/http/exchange.h"
#include "server/net/loop.h"
#include "server/net/timer.h"

namespace saccade::server {

// Lives until the handler has finished the call and the exchange is over, by a reference to itself. Call's
// functions are thread-safe: on other threads than the loop's they are posted. All else is the loop's.
//
// The handler is called from Pump() alone, which looks at the call's state until nothing is due any more. So
// what a handler does within a callback takes effect at once, and leads to the next callback when the first
// has returned.
class GrpcCall final : public Call, public std::enable_shared_from_this<GrpcCall> {
 public:
  struct Setup {
    std::shared_ptr<const GrpcHandler::Options> options;
    // For the head, in `start` and in the exchange.
    ByteCharge memory = {};
    std::shared_ptr<const CallStart> start;
    GrpcForm form = GrpcForm::kGrpc;
    MessageEncoding encoding = MessageEncoding::kIdentity;
    // As CallMethod's.
    bool one_message = false;
    bool charges_answers = false;
    int64_t max_message_bytes = 0;
    int64_t max_growth_bytes = std::numeric_limits<int64_t>::max();
    // As RequestCharge's.
    absl::Duration max_client_wait = absl::InfiniteDuration();
  };

  GrpcCall(Setup setup, Exchange* exchange);

  // Starts the call. The object then keeps itself alive.
  void Begin(std::shared_ptr<CallHandler> handler);

  // Call.
  const CallStart& start() const override { return *setup_.start; }
  std::shared_ptr<const CallStart> shared_start() const override { return setup_.start; }
  void Read() override;
  void Send(BytePieces message) override;
  void Finish(CallEnd end) override;
  void SendAndFinish(BytePieces message, CallEnd end) override;
  absl::StatusCode cancel_code() const override { return cancel_code_; }

  // The exchange's events, see ExchangeReceiver.
  void OnBody(absl::string_view bytes);
  void OnBodyEnd();
  void OnWritten() { Pump(); }
  bool OnShutdown();
  void OnOver();

 private:
  // What the client is expected to send, and by when.
  enum class Upload { kNothing, kMessage, kSomething };

  // Runs `action` now if this is the loop's thread and no earlier action waits for it, else later there. The
  // action returns whether the handler has to be called because of it.
  template <typename Action>
  void Run(Action action);
  // Does an action, which an exception ends together with the call.
  template <typename Action>
  bool Act(Action& action);
  void Pump();
  void PostPump();
  // Does one thing that is due. False if there is none.
  bool Step();
  bool StepRead();
  // Has the handler end the call because the server shuts down, or ends it.
  void ShutDown();
  // Calls the handler; the call fails if that throws.
  template <typename Action>
  void Invoke(Action action);
  void Done();

  bool DoRead();
  bool DoSend(BytePieces message);
  // Charges an answer for as long as it exists, unless it is small or the handler has charged it.
  absl::Status ChargeAnswer(BytePieces* message) const;
  bool DoFinish(const CallEnd& end);
  // Sends the call's end. REQUIRES: exchange_ is not null, and no end was sent.
  void SendEnd(const CallEnd& end);

  // The end of a call that the server ends with an error.
  CallEnd EndOf(const absl::Status& status) const;
  // Ends the call for the client, and cancels it for the handler.
  void Fail(const absl::Status& status);
  void Fail(const MessageFailure& failure);
  // For an exception. Resets the exchange if there is no memory for anything else.
  void FailByException();
  // Drops what was received and not delivered, and cancels the timers of the upload and of the deadline.
  void StopReading();

  void AllowBody();
  void WatchUpload();
  // How long the client may send nothing while it is expected to.
  absl::Duration MaxSilence() const { return std::min(options().silence_timeout, setup_.max_client_wait); }
  void SetUploadTimer(absl::Time due);
  // Calls `due`, which an exception ends together with the call.
  void RunTimer(void (GrpcCall::*due)());
  void OnUploadDue();
  void OnDeadline();
  // The client has not read the end of the answer in time.
  void OnUnread();

  bool open() const { return exchange_ != nullptr && !ended_; }
  const GrpcHandler::Options& options() const { return *setup_.options; }

  const Setup setup_;
  Loop* const loop_;
  // Null once the exchange is over.
  Exchange* exchange_;
  // Null once the call is over.
  std::shared_ptr<CallHandler> handler_;
  std::shared_ptr<GrpcCall> self_;

  MessageReader reader_;
  Base64Decoder text_;
  GrpcResponse response_;

  // Bytes of the body that have come, and that the client may send.
  uint64_t received_ = 0;
  uint64_t allowed_ = Exchange::kFirstBodyBytes;
  bool body_ended_ = false;

  // Actions that were posted to the loop and have not begun.
  std::atomic<int> posted_actions_ = 0;
  bool read_pending_ = false;
  bool send_pending_ = false;
  bool cancel_due_ = false;
  bool shutdown_due_ = false;
  // shutdown_due_ was set.
  bool shuts_down_ = false;
  absl::StatusCode cancel_code_ = absl::StatusCode::kCancelled;
  // Finish() was called.
  bool finished_ = false;
  // The call's end was decided.
  bool ended_ = false;
  // A message was given to the handler.
  bool has_message_ = false;
  // The response's end was given to the exchange.
  bool end_sent_ = false;

  // Pump() or a function of Call runs, which must not be entered again.
  bool busy_ = false;
  // Pump() was called meanwhile.
  bool pump_due_ = false;
  // Another step of decompression was posted.
  bool work_posted_ = false;
  // That step is to be done now.
  bool has_turn_ = false;

  Upload upload_ = Upload::kNothing;
  absl::Time message_begin_;
  // The time that upload_timer_ is set to.
  absl::Time upload_due_;
  Timer upload_timer_;
  Timer deadline_timer_;
  // Set from the answer's end on if the charge has to be left soon, and at the deadline if the client does
  // not read the response.
  Timer reset_timer_;
};

}  // namespace saccade::server
