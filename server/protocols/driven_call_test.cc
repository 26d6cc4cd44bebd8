#include "server/protocols/driven_call.h"

#include <gtest/gtest.h>

#include <memory>
#include <new>
#include <stdexcept>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "server/protocols/testing/fake_call.h"

namespace saccade::server {
namespace {

using testing::FakeCall;

// Reads one message after the other, and throws after the first.
class ThrowingStream final : public DrivenCall {
 public:
  void OnMessage(BytePieces /*message*/) override {
    {
      const absl::MutexLock lock(&mutex_);
      throws_ = true;
    }
    Proceed();
  }
  void OnHalfClose() override { Proceed(); }
  void OnSent(bool /*ok*/) override { Proceed(); }
  void OnCancel() override { Proceed(); }

 private:
  Action NextAction() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (throws_) throw std::runtime_error("a secret");
    if (std::exchange(reads_, true)) return std::monostate();
    return ReadMessage();
  }

  bool throws_ ABSL_GUARDED_BY(mutex_) = false;
  bool reads_ ABSL_GUARDED_BY(mutex_) = false;
};

TEST(DrivenCallTest, AnExceptionEndsTheCallOnce) {
  FakeCall call;
  std::weak_ptr<ThrowingStream> freed;
  {
    auto handler = std::make_shared<ThrowingStream>();
    freed = handler;
    call.Begin(std::move(handler));
  }
  call.Deliver("request");
  ASSERT_TRUE(call.is_finished());
  EXPECT_EQ(call.end().status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(call.end().status.message().find("secret"), absl::string_view::npos);
  freed.lock()->OnCancel();
  call.Done();
  EXPECT_TRUE(freed.expired());
}

// A call whose end is lost a few times for want of memory.
class BrokenCall final : public Call {
 public:
  explicit BrokenCall(int losses) : losses_(losses) {}

  const CallStart& start() const override { return start_; }
  void Read() override {}
  void Send(BytePieces /*message*/) override {}
  void Finish(CallEnd end) override {
    if (losses_-- > 0) throw std::bad_alloc();
    ends.push_back(end.status);
  }

  std::vector<absl::Status> ends;

 private:
  const CallStart start_ = {};
  int losses_;
};

// Ends with OK when the client has sent all.
class EndingStream final : public DrivenCall {
 public:
  void OnMessage(BytePieces /*message*/) override {}
  void OnHalfClose() override {
    {
      const absl::MutexLock lock(&mutex_);
      ends_ = true;
    }
    Proceed();
  }
  void OnSent(bool /*ok*/) override {}
  void OnCancel() override { Proceed(); }

 private:
  Action NextAction() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (ends_) return CallEnd();
    return std::monostate();
  }

  bool ends_ ABSL_GUARDED_BY(mutex_) = false;
};

TEST(DrivenCallTest, AnEndThatIsLostIsAnError) {
  BrokenCall call(1);
  const auto handler = std::make_shared<EndingStream>();
  handler->OnStart(&call);
  handler->OnHalfClose();
  ASSERT_EQ(call.ends.size(), 1u);
  EXPECT_EQ(call.ends[0].code(), absl::StatusCode::kInternal);
  handler->OnCancel();
  EXPECT_EQ(call.ends.size(), 1u) << "it has ended";
}

TEST(DrivenCallTest, TheNextEventEndsACallWhoseErrorIsLostToo) {
  BrokenCall call(2);
  const auto handler = std::make_shared<EndingStream>();
  handler->OnStart(&call);
  EXPECT_THROW(handler->OnHalfClose(), std::bad_alloc);
  EXPECT_TRUE(call.ends.empty());
  handler->OnCancel();
  EXPECT_EQ(call.ends.size(), 1u);
}

}  // namespace
}  // namespace saccade::server
