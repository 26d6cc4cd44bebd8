// A call without a network, for tests of call handlers.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "server/grpc/call.h"
#include "server/grpc/testing/pieces.h"

namespace saccade::server::testing {

// The handler calls the functions of Call, and the test plays the client and the network. Fails the test if
// the handler breaks one of Call's conditions. The test's thread is the network's.
class FakeCall final : public Call {
 public:
  // A call without a deadline.
  FakeCall() { start_.deadline = absl::InfiniteFuture(); }
  explicit FakeCall(CallStart start) : start_(std::move(start)) {}
  ~FakeCall() override { EXPECT_TRUE(finished_.HasBeenNotified()) << "the call was not finished"; }

  // The network's side. `handler` is held until the call is done.
  void Begin(std::shared_ptr<CallHandler> handler) {
    handler_ = std::move(handler);
    handler_->OnStart(this);
  }
  // The client's next message. REQUIRES: wants_message().
  void Deliver(BytePieces message) {
    TakeRead();
    handler_->OnMessage(std::move(message));
  }
  void Deliver(const std::string& message) { Deliver(InPieces(message, message.size() + 1)); }
  void Deliver(const google::protobuf::MessageLite& message) { Deliver(message.SerializeAsString()); }
  void HalfClose() {
    TakeRead();
    handler_->OnHalfClose();
  }
  void Cancel() { handler_->OnCancel(); }
  // Returns whether the handler ends the call itself.
  bool ShutDown(const CallEnd& end) { return handler_->OnShutdown(end); }
  // The message that is being sent was written, or could not be. Returns it. Blocks until there is one.
  std::string Written(bool ok = true) {
    std::string message;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(
          +[](FakeCall* call) ABSL_NO_THREAD_SAFETY_ANALYSIS { return call->sending_.has_value(); }, this));
      message = Joined(*sending_);
    }
    Drop();
    handler_->OnSent(ok);
    return message;
  }
  // Ends the call. Blocks until the handler has finished it.
  void Done() {
    finished_.WaitForNotification();
    Drop();
    handler_->OnDone();
    handler_.reset();
  }

  bool wants_message() {
    const absl::MutexLock lock(&mutex_);
    return is_reading_;
  }
  // Blocks until the handler has asked for a message.
  void AwaitRead() {
    const absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&is_reading_));
  }
  bool is_sending() {
    const absl::MutexLock lock(&mutex_);
    return sending_.has_value();
  }
  bool is_finished() const { return finished_.HasBeenNotified(); }
  // Blocks until the handler has finished the call.
  const CallEnd& end() {
    finished_.WaitForNotification();
    return end_;
  }

  const CallStart& start() const override { return start_; }
  void Read() override {
    const absl::MutexLock lock(&mutex_);
    EXPECT_FALSE(finished_.HasBeenNotified()) << "read after the end";
    EXPECT_FALSE(is_reading_) << "a second read";
    is_reading_ = true;
  }
  void Send(BytePieces message) override {
    const absl::MutexLock lock(&mutex_);
    EXPECT_FALSE(finished_.HasBeenNotified()) << "sent after the end";
    EXPECT_FALSE(sending_.has_value()) << "a second send";
    sending_ = std::move(message);
  }
  void Finish(CallEnd end) override {
    const absl::MutexLock lock(&mutex_);
    ASSERT_FALSE(finished_.HasBeenNotified()) << "finished twice";
    end_ = std::move(end);
    finished_.Notify();
  }

 private:
  void TakeRead() {
    const absl::MutexLock lock(&mutex_);
    EXPECT_TRUE(is_reading_) << "nothing was asked for";
    is_reading_ = false;
  }
  void Drop() {
    std::optional<BytePieces> dropped;
    const absl::MutexLock lock(&mutex_);
    dropped.swap(sending_);
  }

  CallStart start_;
  std::shared_ptr<CallHandler> handler_;
  absl::Mutex mutex_;
  bool is_reading_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<BytePieces> sending_ ABSL_GUARDED_BY(mutex_);
  absl::Notification finished_;
  // Set before `finished_`.
  CallEnd end_;
};

}  // namespace saccade::server::testing
