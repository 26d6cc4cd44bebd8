#include "server/net/work_pool.h"

#include <atomic>
#include <memory>
#include <stdexcept>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"

namespace saccade::server {
namespace {

TEST(WorkPoolTest, RunsTasksOnAllThreads) {
  absl::Notification first, second;
  WorkPool pool(2, 10);
  // Each ends only when the other runs as well.
  EXPECT_TRUE(pool.Submit([&] {
    first.Notify();
    second.WaitForNotification();
  }));
  EXPECT_TRUE(pool.Submit([&] {
    second.Notify();
    first.WaitForNotification();
  }));
}

TEST(WorkPoolTest, RefusesWhatWouldWaitBeyondTheBound) {
  absl::Notification started, go;
  const auto captured = std::make_shared<int>(0);
  std::atomic<int> ran = 0;
  {
    WorkPool pool(1, 2);
    ASSERT_TRUE(pool.Submit([&] {
      started.Notify();
      go.WaitForNotification();
    }));
    started.WaitForNotification();
    EXPECT_TRUE(pool.Submit([&] { ++ran; }));
    EXPECT_TRUE(pool.Submit([&] { ++ran; }));
    EXPECT_FALSE(pool.Submit([&, captured] { ++ran; }));
    EXPECT_EQ(captured.use_count(), 1) << "a refused task is destroyed";
    go.Notify();
    // The end runs what waits.
  }
  EXPECT_EQ(ran, 2);
}

TEST(WorkPoolTest, AnExceptionDoesNotEndItsThread) {
  absl::Notification ran;
  WorkPool pool(1, 10);
  pool.Submit([] { throw std::runtime_error("broken"); });
  pool.Submit([] { throw 1; });
  pool.Submit([&] { ran.Notify(); });
  ran.WaitForNotification();
}

}  // namespace
}  // namespace saccade::server
