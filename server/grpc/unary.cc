#include "server/grpc/unary.h"

#include <atomic>
#include <new>
#include <optional>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"

namespace saccade::server {
namespace {

struct UnaryParts {
  std::string message;
  UnaryFunction function;
  std::function<void(absl::StatusCode)> no_message;
};

// The call that a method's function gets. Fails it if it is dropped without an answer.
class PendingCall final : public UnaryCall {
 public:
  PendingCall(Call* call, std::shared_ptr<Cancellation> cancellation)
      : call_(call), cancellation_(std::move(cancellation)) {}
  ~PendingCall() override {
    if (claimed_.exchange(true)) return;
    try {
      call_->Finish({absl::InternalError("the server dropped the call because of an error of its own")});
    } catch (...) {
      // Without memory the client waits for its own deadline.
    }
  }

  const CallStart& start() const override { return call_->start(); }
  const std::shared_ptr<Cancellation>& cancellation() const override { return cancellation_; }

  void Respond(BytePieces response) override {
    AnswerBy([&] { call_->SendAndFinish(std::move(response), {absl::OkStatus()}); });
  }
  void Fail(CallEnd end) override {
    AnswerBy([&] { call_->Finish(std::move(end)); });
  }

 private:
  // Calls `answer` unless another answer was given. If it throws, the destructor answers.
  void AnswerBy(absl::FunctionRef<void()> answer) {
    if (claimed_.exchange(true)) return;
    absl::Cleanup unanswered = [this] { claimed_ = false; };
    answer();
    std::move(unanswered).Cancel();
  }

  Call* const call_;
  const std::shared_ptr<Cancellation> cancellation_;
  // Whether an answer was given, or is being given.
  std::atomic<bool> claimed_ = false;
};

// Without a text if there is no memory for it: a call that is not finished is never freed.
absl::Status EndedEarly(absl::StatusCode code) {
  try {
    return absl::Status(code, "the call ended before its request was complete");
  } catch (const std::bad_alloc&) {
    return absl::Status(code, "");
  }
}

class UnaryHandler final : public CallHandler {
 public:
  explicit UnaryHandler(std::shared_ptr<const UnaryParts> parts) : parts_(std::move(parts)) {}

  void OnStart(Call* call) override {
    call_ = call;
    call_->Read();
  }

  void OnMessage(BytePieces message) override {
    if (message_) {
      Refuse(absl::InvalidArgumentError(
          absl::StrCat("the call brought more than one ", parts_->message, "; send one and then close")));
      return;
    }
    message_ = std::move(message);
    call_->Read();
  }

  void OnHalfClose() override {
    if (!message_) {
      TellNoMessage(absl::StatusCode::kInvalidArgument);
      Refuse(absl::InvalidArgumentError(absl::StrCat("the call brought no ", parts_->message)));
      return;
    }
    const auto pending = std::make_shared<PendingCall>(call_, cancellation_);
    is_running_ = true;
    BytePieces message = *std::exchange(message_, std::nullopt);
    try {
      parts_->function(pending, std::move(message));
    } catch (...) {
      pending->Fail(
          {absl::InternalError("the server failed to handle the call because of an error of its own")});
    }
  }

  void OnSent(bool /*ok*/) override {}

  void OnCancel() override {
    cancellation_->Cancel();
    // Otherwise the function answers.
    if (is_running_) return;
    const absl::StatusCode code = call_->cancel_code();
    const bool has_message = message_.has_value();
    Refuse(EndedEarly(code));
    // After the end, which it must not prevent.
    if (!has_message) TellNoMessage(code);
  }

  void OnDone() override {}

 private:
  void TellNoMessage(absl::StatusCode code) const {
    if (parts_->no_message != nullptr) parts_->no_message(code);
  }

  void Refuse(const absl::Status& status) {
    message_.reset();
    call_->Finish({status});
  }

  const std::shared_ptr<const UnaryParts> parts_;
  const std::shared_ptr<Cancellation> cancellation_ = std::make_shared<Cancellation>();
  Call* call_ = nullptr;
  std::optional<BytePieces> message_;
  // The function was called.
  bool is_running_ = false;
};

}  // namespace

CallMethod UnaryMethod(std::string path, std::string message, UnaryFunction function,
                       std::function<void(absl::StatusCode)> no_message) {
  auto parts = std::make_shared<const UnaryParts>(
      UnaryParts{std::move(message), std::move(function), std::move(no_message)});
  return {.path = std::move(path),
          .make = [parts] { return std::make_shared<UnaryHandler>(parts); },
          .one_message = true};
}

}  // namespace saccade::server
