#include "server/batching/model_queue.h"

#include <gtest/gtest.h>

#include "server/batching/testing/recording_task.h"

namespace saccade::server {
namespace {

constexpr NanoTime kStart = NanoTime() + kSecond;

class ModelQueueTest : public ::testing::Test {
 protected:
  absl::Status Push(int priority, NanoTime now) {
    Watched watched = MakeTask({.priority = priority, .arrival = now.ToTime()});
    return queue_.Push(watched.task, now, /*ahead=*/Nanos(), /*instances=*/1, &dropped_);
  }

  ModelQueue::Tasks TakeDue(NanoTime now) {
    ModelQueue::Due due;
    NanoTime wake_at = NanoTime::Never();
    if (!queue_.FindDue(now, /*instances=*/1, /*at_once=*/true, &due, &wake_at, &dropped_)) return {};
    return queue_.Take(*due.bucket, now, &dropped_);
  }

  ModelQueue queue_{{.max_batch_size = 1, .max_queue_size = 1000}};
  ModelQueue::Dropped dropped_;
};

TEST_F(ModelQueueTest, PrioritiesThatNobodyUsesAnyMoreAreForgotten) {
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(Push(/*priority=*/i % 200 - 100, kStart + Nanos(i)).ok());
    ASSERT_EQ(TakeDue(kStart + Nanos(i)).size(), 1u);
  }
  EXPECT_LE(queue_.levels(), 40u);
}

TEST_F(ModelQueueTest, PrioritiesThatWaitAreNot) {
  for (int i = -100; i < 100; ++i) ASSERT_TRUE(Push(i, kStart).ok());
  EXPECT_EQ(queue_.levels(), 200u);
  for (int i = 100; i-- > -100;) {
    const auto batch = TakeDue(kStart + kMicrosecond);
    ASSERT_EQ(batch.size(), 1u);
    EXPECT_EQ(batch[0]->priority(), i) << "the highest goes first";
  }
  EXPECT_TRUE(dropped_.empty());
}

TEST_F(ModelQueueTest, PrioritiesBeyondTheRangeAreOneLevel) {
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(Push(/*priority=*/-100 - i, kStart).ok());
  EXPECT_EQ(queue_.levels(), 1u);
}

TEST_F(ModelQueueTest, TargetsOfManyLevelsAndBucketsAreComputedRarely) {
  constexpr int kBuckets = 100;
  for (int i = 0; i < kBuckets; ++i) queue_.Learn(i, 1, kMillisecond, kStart);
  int64_t computed = 0;
  for (int i = 1; i <= 8; ++i) {
    ASSERT_TRUE(Push(/*priority=*/i, kStart).ok());
    computed += kBuckets * i;
    EXPECT_EQ(queue_.targets_computed(), computed) << "up to eight levels, each new one computes at once";
  }
  // These 800 targets are recomputed after 800 / 64 times the usual number of pushes, which is 16.
  for (int i = 0; i < 199; ++i) ASSERT_TRUE(Push(i - 100, kStart).ok());
  EXPECT_EQ(queue_.levels(), 199u);
  EXPECT_EQ(queue_.targets_computed(), computed);
  ASSERT_TRUE(Push(/*priority=*/1, kStart).ok());
  EXPECT_EQ(queue_.targets_computed(), computed + kBuckets * 199);
}

TEST_F(ModelQueueTest, ForgettingALevelComputesNoTargets) {
  for (int i = 0; i < 100; ++i) queue_.Learn(i, 1, kMillisecond, kStart);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(Push(/*priority=*/i % 200 - 100, kStart).ok());
    ASSERT_EQ(TakeDue(kStart).size(), 1u);
  }
  // The first eight levels, and then at most 64 targets for 16 pushes.
  EXPECT_LE(queue_.targets_computed(), 100 * 36 + 1000 * 64 / 16);
}

TEST(ModelQueueRoomTest, BatchesStaySmallForAWhileAfterMemoryWasShort) {
  ModelQueue queue({.max_batch_size = 8, .max_queue_size = 1000});
  ModelQueue::Dropped dropped;
  const auto batch_at = [&](NanoTime now) {
    for (int i = 0; i < 20; ++i) {
      Watched watched = MakeTask({.arrival = now.ToTime()});
      EXPECT_TRUE(queue.Push(watched.task, now, /*ahead=*/Nanos(), /*instances=*/1, &dropped).ok());
    }
    ModelQueue::Due due;
    NanoTime wake_at = NanoTime::Never();
    EXPECT_TRUE(queue.FindDue(now, /*instances=*/1, /*at_once=*/true, &due, &wake_at, &dropped));
    const size_t size = queue.Take(*due.bucket, now, &dropped).size();
    queue.TakeAll();
    return size;
  };
  EXPECT_EQ(batch_at(kStart), 8u);
  queue.ReduceBatches(0, 6, kStart);
  EXPECT_EQ(batch_at(kStart + kSecond), 3u);
  queue.ReduceBatches(0, 1, kStart + kSecond);
  EXPECT_EQ(batch_at(kStart + 2 * kSecond), 1u);
  EXPECT_EQ(batch_at(kStart + 60 * kSecond), 8u);
}

// Clients choose the sizes of pictures and thereby the buckets, so what is known of a bucket must not be kept
// forever.
TEST(ModelQueueBucketsTest, BucketsThatNobodyUsesAnyMoreAreForgotten) {
  ModelQueue queue({.max_batch_size = 1, .max_queue_size = 10'000});
  ModelQueue::Dropped dropped;
  NanoTime now = kStart;
  const auto tick = [&] { return now += Nanos(1); };
  const auto push = [&](int64_t bucket, absl::Duration left) {
    tick();
    const absl::Time arrival = now.ToTime();
    Watched watched = MakeTask({.bucket = bucket, .arrival = arrival, .deadline = arrival + left});
    return queue.Push(watched.task, now, /*ahead=*/Nanos(), /*instances=*/1, &dropped);
  };
  // Passes of these buckets take a second; bucket -1 has a queued task.
  for (const int64_t bucket : {-1, 0, 1}) queue.Learn(bucket, 1, kSecond, tick());
  ASSERT_TRUE(push(-1, absl::Hours(1)).ok());
  EXPECT_TRUE(absl::IsDeadlineExceeded(push(0, absl::Milliseconds(900))));
  for (int64_t bucket = 2; bucket < 400; ++bucket) {
    queue.Learn(bucket, 1, kMillisecond, tick());
    if (bucket % 50 != 0) continue;
    ASSERT_TRUE(absl::IsDeadlineExceeded(push(1, absl::Milliseconds(900)))) << bucket;
  }
  EXPECT_TRUE(absl::IsDeadlineExceeded(push(-1, absl::Milliseconds(900)))) << "somebody waits there";
  EXPECT_TRUE(push(0, absl::Milliseconds(900)).ok()) << "nothing is known of it any more";
}

class CompanyTest : public ::testing::Test {
 protected:
  // Simulates 400 requests per second. A pass over eight items takes 24 ms, over one 20 ms.
  std::unique_ptr<ModelQueue> Busy(const BatcherOptions& options) {
    auto queue = std::make_unique<ModelQueue>(options);
    for (int i = 0; i < 50; ++i) {
      queue->Learn(0, 1, 20 * kMillisecond, now_);
      queue->Learn(0, 8, 24 * kMillisecond, now_);
    }
    // Requests arrive while an instance computes a batch.
    queue->CountStarted(0, 8, now_);
    for (int i = 0; i < 1000; ++i) {
      now_ += 2.5 * kMillisecond;
      Push(*queue);
      queue->TakeAll();
    }
    queue->CountComputed(0, 8, now_);
    return queue;
  }

  void Push(ModelQueue& queue, int priority = 0) {
    Watched watched = MakeTask({.priority = priority, .arrival = now_.ToTime()});
    EXPECT_TRUE(queue.Push(watched.task, now_, /*ahead=*/Nanos(), /*instances=*/1, &dropped_).ok());
  }

  // Whether a batch is due without waiting for more items.
  bool Due(ModelQueue& queue) {
    ModelQueue::Due due;
    wake_at_ = NanoTime::Never();
    return queue.FindDue(now_, /*instances=*/1, /*at_once=*/false, &due, &wake_at_, &dropped_);
  }

  NanoTime now_ = kStart;
  NanoTime wake_at_ = NanoTime::Never();
  ModelQueue::Dropped dropped_;
};

TEST_F(CompanyTest, IsWaitedForWhereItPays) {
  auto queue = Busy({.max_batch_size = 8, .max_queue_size = 100});
  Push(*queue);
  EXPECT_FALSE(Due(*queue));
  EXPECT_GT(wake_at_, now_);
  EXPECT_LT(wake_at_, now_ + 24 * kMillisecond) << "not for longer than a pass takes";
  now_ = wake_at_;
  EXPECT_TRUE(Due(*queue));
}

// Without targets of its own, the new level would not wait.
TEST_F(CompanyTest, IsWaitedForByALevelThatHasItsNeighboursTargets) {
  auto queue = Busy({.max_batch_size = 8, .max_queue_size = 100});
  for (int priority = 1; priority <= 9; ++priority) {
    Push(*queue, priority);
    queue->TakeAll();
  }
  const int64_t computed = queue->targets_computed();
  Push(*queue, /*priority=*/-50);
  EXPECT_EQ(queue->levels(), 11u);
  EXPECT_FALSE(Due(*queue));
  EXPECT_EQ(queue->targets_computed(), computed);
}

TEST_F(CompanyTest, IsEnoughIfAllThatWereInFlightAreThere) {
  auto queue = Busy({.max_batch_size = 16, .max_queue_size = 100});
  queue->CountStarted(0, 4, now_);
  for (int i = 0; i < 4; ++i) Push(*queue);
  EXPECT_FALSE(Due(*queue)) << "nine were in flight, eight are";
  Push(*queue);
  EXPECT_TRUE(Due(*queue));
}

TEST_F(CompanyTest, IsNeverWaitedForWithoutADelay) {
  auto queue = Busy({.max_batch_size = 8, .max_queue_size = 100, .max_queue_delay = absl::ZeroDuration()});
  Push(*queue);
  EXPECT_TRUE(Due(*queue));
}

TEST_F(CompanyTest, IsEnoughOnceTheLargestPreferredSizeIsThere) {
  auto queue = Busy({.max_batch_size = 8, .preferred_batch_sizes = {1, 2}, .max_queue_size = 100});
  Push(*queue);
  EXPECT_FALSE(Due(*queue));
  Push(*queue);
  EXPECT_TRUE(Due(*queue));
}

}  // namespace
}  // namespace saccade::server
