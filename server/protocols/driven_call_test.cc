#include "server/protocols/driven_call.h"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <utility>

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

}  // namespace
}  // namespace saccade::server
