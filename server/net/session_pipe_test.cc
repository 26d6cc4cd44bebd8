#include "server/net/testing/session_pipe.h"

#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "server/net/testing/hook_session.h"

namespace saccade::server {
namespace {

TEST(ManualLoopTest, TimePassesFromTimerToTimer) {
  ManualLoop loop;
  const absl::Time start = loop.Now();
  std::string ran;
  Timer early(&loop.timers(), [&] {
    EXPECT_EQ(loop.Now(), start + absl::Seconds(1));
    loop.Post([&] { ran += "posted "; });
    loop.AtEndOfRound([&] { ran += "end "; });
    ran += "early ";
  });
  Timer late(&loop.timers(), [&] {
    EXPECT_EQ(loop.Now(), start + absl::Seconds(2));
    ran += "late";
  });
  late.Set(start + absl::Seconds(2));
  early.Set(start + absl::Seconds(1));
  loop.RunUntilIdle();
  EXPECT_EQ(ran, "");
  loop.AdvanceTo(start + absl::Seconds(10));
  EXPECT_EQ(ran, "early posted end late");
  EXPECT_EQ(loop.Now(), start + absl::Seconds(10));
}

class SessionPipeTest : public testing::Test {
 protected:
  void Open() { pipe_.Open(std::make_unique<HookSession>(&pipe_, &hooks_)); }

  ManualLoop loop_;
  SessionHooks hooks_;
  SessionPipe pipe_{&loop_};
};

TEST_F(SessionPipeTest, CarriesBytesBothWays) {
  Open();
  pipe_.Send("hello");
  EXPECT_EQ(pipe_.TakeOutput(), "hello");
  pipe_.EndSending();
  EXPECT_TRUE(pipe_.closed());
  EXPECT_TRUE(pipe_.lost());
  EXPECT_EQ(hooks_.lost, 1);
  EXPECT_EQ(hooks_.destroyed, 1);
}

TEST_F(SessionPipeTest, TheSocketMayTakeLess) {
  Open();
  pipe_.LimitRoom(3);
  pipe_.Send("hello");
  EXPECT_EQ(pipe_.TakeOutput(), "hel");
  pipe_.EndSending();
  EXPECT_TRUE(pipe_.closing());
  EXPECT_FALSE(pipe_.closed());
  pipe_.GiveRoom(1);
  EXPECT_EQ(pipe_.TakeOutput(), "l");
  pipe_.GiveRoom(1);
  EXPECT_EQ(pipe_.TakeOutput(), "o");
  EXPECT_TRUE(pipe_.closed());
}

TEST_F(SessionPipeTest, KeepsBytesWhileReadingIsPaused) {
  Open();
  pipe_.PauseReading(true);
  pipe_.Send("one ");
  pipe_.Send("two");
  EXPECT_EQ(pipe_.TakeOutput(), "");
  pipe_.PauseReading(false);
  loop_.RunUntilIdle();
  EXPECT_EQ(pipe_.TakeOutput(), "one two");
}

TEST_F(SessionPipeTest, AbortLosesTheSessionFromTheLoop) {
  hooks_.on_bytes = [&](Transport* transport, std::string_view) {
    transport->Abort();
    EXPECT_EQ(hooks_.lost, 0);
  };
  Open();
  pipe_.Send("x");
  EXPECT_TRUE(pipe_.aborted());
  EXPECT_EQ(hooks_.lost, 1);
  pipe_.Send("not delivered");
  EXPECT_EQ(hooks_.destroyed, 1);
}

}  // namespace
}  // namespace saccade::server
