#include "server/lifecycle/signals.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

namespace saccade::server {
namespace {

class SignalsTest : public testing::Test {
 protected:
  // The other tests of this program keep the signals' usual meaning.
  SignalsTest() {
    pthread_sigmask(SIG_SETMASK, nullptr, &mask_);
    pipe_handler_ = signal(SIGPIPE, SIG_DFL);
    BlockSignals();
  }
  ~SignalsTest() override {
    pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
    signal(SIGPIPE, pipe_handler_);
  }

 private:
  sigset_t mask_;
  void (*pipe_handler_)(int) = SIG_DFL;
};

TEST_F(SignalsTest, BothEndSignalsAreReported) {
  for (const int one : {SIGTERM, SIGINT}) {
    pthread_kill(pthread_self(), one);
    EXPECT_TRUE(AwaitSignal(absl::InfiniteDuration())) << one;
    EXPECT_FALSE(AwaitSignal(absl::ZeroDuration())) << "each is reported once";
  }
}

TEST_F(SignalsTest, WithoutASignalTheWaitEnds) {
  EXPECT_FALSE(AwaitSignal(absl::ZeroDuration()));
  EXPECT_FALSE(AwaitSignal(absl::Milliseconds(1)));
}

TEST_F(SignalsTest, ThreadsStartedLaterLeaveSignalsToTheMainThread) {
  std::thread([] {
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    EXPECT_EQ(sigismember(&mask, SIGTERM), 1);
    EXPECT_EQ(sigismember(&mask, SIGINT), 1);
  }).join();
}

TEST_F(SignalsTest, AClosedPipeIsAnErrorAndNotTheEnd) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  EXPECT_EQ(write(ends[1], "x", 1), -1);
  EXPECT_EQ(errno, EPIPE);
  close(ends[1]);
}

}  // namespace
}  // namespace saccade::server
