#include "server/batching/model_queue.h"

#include <gtest/gtest.h>

#include "server/batching/recording_task.h"

namespace saccade::server {
namespace {

class ModelQueueTest : public ::testing::Test {
 protected:
  absl::Status Push(int priority, int64_t now) {
    Watched watched = MakeTask({.priority = priority, .arrival = absl::FromUnixNanos(now)});
    return queue_.Push(watched.task, now, /*ahead=*/0, /*instances=*/1, &dropped_);
  }

  ModelQueue::Tasks TakeDue(int64_t now) {
    ModelQueue::Due due;
    int64_t wake_at = kNever;
    if (!queue_.FindDue(now, /*instances=*/1, /*at_once=*/true, &due, &wake_at, &dropped_)) return {};
    return queue_.Take(*due.bucket, now, &dropped_);
  }

  ModelQueue queue_{{.max_batch_size = 1, .max_queue_size = 1000}};
  ModelQueue::Dropped dropped_;
};

TEST_F(ModelQueueTest, PrioritiesThatNobodyUsesAnyMoreAreForgotten) {
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(Push(/*priority=*/i, /*now=*/1000 + i).ok());
    ASSERT_EQ(TakeDue(1000 + i).size(), 1u);
  }
  EXPECT_LE(queue_.levels(), 40u);
}

TEST_F(ModelQueueTest, PrioritiesThatWaitAreNot) {
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(Push(i, 1000).ok());
  EXPECT_EQ(queue_.levels(), 200u);
  for (int i = 200; i-- > 0;) {
    const auto batch = TakeDue(2000);
    ASSERT_EQ(batch.size(), 1u);
    EXPECT_EQ(batch[0]->priority(), i) << "the highest goes first";
  }
  EXPECT_TRUE(dropped_.empty());
}

TEST(ModelQueueRoomTest, BatchesStaySmallForAWhileAfterMemoryWasShort) {
  ModelQueue queue({.max_batch_size = 8, .max_queue_size = 1000});
  ModelQueue::Dropped dropped;
  const auto batch_at = [&](int64_t now) {
    for (int i = 0; i < 20; ++i) {
      Watched watched = MakeTask({.arrival = absl::FromUnixNanos(now)});
      EXPECT_TRUE(queue.Push(watched.task, now, /*ahead=*/0, /*instances=*/1, &dropped).ok());
    }
    ModelQueue::Due due;
    int64_t wake_at = kNever;
    EXPECT_TRUE(queue.FindDue(now, /*instances=*/1, /*at_once=*/true, &due, &wake_at, &dropped));
    const size_t size = queue.Take(*due.bucket, now, &dropped).size();
    queue.TakeAll();
    return size;
  };
  constexpr int64_t kSecond = 1'000'000'000;
  EXPECT_EQ(batch_at(kSecond), 8u);
  queue.NoRoomFor(0, 6, kSecond);
  EXPECT_EQ(batch_at(2 * kSecond), 3u);
  queue.NoRoomFor(0, 1, 2 * kSecond);
  EXPECT_EQ(batch_at(3 * kSecond), 1u);
  EXPECT_EQ(batch_at(60 * kSecond), 8u);
}

}  // namespace
}  // namespace saccade::server
