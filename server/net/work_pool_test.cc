#include "server/net/work_pool.h"

#include <pthread.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"

namespace saccade::server {
namespace {

TEST(WorkPoolTest, RunsTasksOnAllThreads) {
  absl::Notification first, second;
  WorkPool pool(2, 10);
  // Each ends only when the other runs as well.
  EXPECT_TRUE(pool.Submit("a", [&] {
    first.Notify();
    second.WaitForNotification();
  }));
  EXPECT_TRUE(pool.Submit("a", [&] {
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
    ASSERT_TRUE(pool.Submit("a", [&] {
      started.Notify();
      go.WaitForNotification();
    }));
    started.WaitForNotification();
    EXPECT_TRUE(pool.Submit("a", [&] { ++ran; }));
    EXPECT_FALSE(pool.Submit("a", [&] { ++ran; })) << "one client has half of the places";
    EXPECT_TRUE(pool.Submit("b", [&] { ++ran; }));
    EXPECT_FALSE(pool.Submit("c", [&, captured] { ++ran; }));
    EXPECT_EQ(captured.use_count(), 1) << "a refused task is destroyed";
    go.Notify();
    // The end runs what waits.
  }
  EXPECT_EQ(ran, 2);
}

TEST(WorkPoolTest, ClientsTakeTurns) {
  absl::Notification started, go;
  std::string order;
  {
    WorkPool pool(1, 100);
    ASSERT_TRUE(pool.Submit("a", [&] {
      started.Notify();
      go.WaitForNotification();
    }));
    started.WaitForNotification();
    for (const std::string client : {"a", "a", "a", "b", "b", "c"})
      EXPECT_TRUE(pool.Submit(client, [&order, client] { order += client; }));
    go.Notify();
  }
  EXPECT_EQ(order, "abcaba");
}

TEST(WorkPoolTest, AnExceptionDoesNotEndItsThread) {
  absl::Notification ran;
  WorkPool pool(1, 10);
  pool.Submit("a", [] { throw std::runtime_error("broken"); });
  pool.Submit("a", [] { throw 1; });
  pool.Submit("a", [&] { ran.Notify(); });
  ran.WaitForNotification();
}

TEST(WorkPoolTest, ALackOfThreadsIsAnError) {
  pthread_attr_t usual, huge;
  ASSERT_EQ(pthread_getattr_default_np(&usual), 0);
  ASSERT_EQ(pthread_getattr_default_np(&huge), 0);
  // No system has memory for such a stack.
  ASSERT_EQ(pthread_attr_setstacksize(&huge, size_t{1} << 60), 0);
  ASSERT_EQ(pthread_setattr_default_np(&huge), 0);
  EXPECT_EQ(WorkPool::Create(2, 10).status().code(), absl::StatusCode::kResourceExhausted);
  ASSERT_EQ(pthread_setattr_default_np(&usual), 0);
  EXPECT_TRUE(WorkPool::Create(2, 10).ok());
  pthread_attr_destroy(&usual);
  pthread_attr_destroy(&huge);
}

}  // namespace
}  // namespace saccade::server
