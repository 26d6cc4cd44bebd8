#include <memory>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/batching/batch_queue.h"
#include "server/batching/recording_task.h"

namespace saccade::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

absl::Time At(int milliseconds) { return absl::FromUnixSeconds(1000) + absl::Milliseconds(milliseconds); }

class BatchQueueBucketsTest : public ::testing::Test {
 protected:
  // Pushes at the task's arrival; it has to be taken.
  std::shared_ptr<Fate> Push(BatchQueue& queue, BatchTask::Traits traits) {
    const absl::Time now = traits.arrival;
    auto [task, fate] = MakeTask(std::move(traits));
    const absl::Status taken = queue.Push(task, now, &dropped_);
    EXPECT_TRUE(taken.ok()) << taken;
    fates_.push_back(fate);
    return fate;
  }

  // The indices, in order of Push, of what Poll hands out.
  std::vector<size_t> Poll(BatchQueue& queue, absl::Time now) {
    BatchQueue::Polled polled = queue.Poll(now);
    for (auto& dropped : polled.dropped) dropped_.push_back(std::move(dropped));
    std::vector<size_t> indices;
    for (const auto& task : polled.batch) {
      for (size_t i = 0; i < fates_.size(); ++i) {
        if (fates_[i] == FateOf(task)) indices.push_back(i);
      }
    }
    return indices;
  }

  std::vector<std::shared_ptr<Fate>> fates_;
  std::vector<BatchQueue::Dropped> dropped_;
};

TEST_F(BatchQueueBucketsTest, BatchesNeverMixBuckets) {
  BatchQueue queue({.max_batch_size = 8});
  for (int i = 0; i < 6; ++i) Push(queue, {.bucket = i % 3, .arrival = At(i)});
  EXPECT_THAT(Poll(queue, At(9)), ElementsAre(0, 3));
  EXPECT_THAT(Poll(queue, At(9)), ElementsAre(1, 4));
  EXPECT_THAT(Poll(queue, At(9)), ElementsAre(2, 5));
  EXPECT_THAT(Poll(queue, At(9)), IsEmpty());
}

TEST_F(BatchQueueBucketsTest, WithoutDelayTheFirstInOrderGoesFirstWhateverItsBucket) {
  BatchQueue queue({.max_batch_size = 2});
  // A full bucket does not go before what is more urgent.
  Push(queue, {.bucket = 1, .arrival = At(0)});
  Push(queue, {.bucket = 1, .arrival = At(1)});
  Push(queue, {.bucket = 2, .arrival = At(2), .deadline = At(900)});
  Push(queue, {.bucket = 3, .priority = 1, .arrival = At(3)});
  EXPECT_THAT(Poll(queue, At(3)), ElementsAre(3));
  EXPECT_THAT(Poll(queue, At(3)), ElementsAre(2));
  EXPECT_THAT(Poll(queue, At(3)), ElementsAre(0, 1));
}

TEST_F(BatchQueueBucketsTest, EachBucketWaitsForItself) {
  BatchQueue queue({.max_batch_size = 4, .max_queue_delay = absl::Milliseconds(10)});
  Push(queue, {.bucket = 1, .arrival = At(0)});
  Push(queue, {.bucket = 2, .arrival = At(4)});
  EXPECT_EQ(queue.ready_at(), At(10));
  EXPECT_THAT(Poll(queue, At(10)), ElementsAre(0));
  EXPECT_EQ(queue.ready_at(), At(14));
  EXPECT_THAT(Poll(queue, At(13)), IsEmpty());
  EXPECT_THAT(Poll(queue, At(14)), ElementsAre(1));
}

TEST_F(BatchQueueBucketsTest, PicturesOfOtherBucketsDoNotMakeABatchFull) {
  BatchQueue queue({.max_batch_size = 4, .max_queue_delay = absl::Seconds(1)});
  Push(queue, {.size = 3, .bucket = 1, .arrival = At(0)});
  Push(queue, {.size = 3, .bucket = 2, .arrival = At(1)});
  EXPECT_THAT(Poll(queue, At(2)), IsEmpty());
  Push(queue, {.size = 1, .bucket = 2, .arrival = At(2)});
  EXPECT_THAT(Poll(queue, At(2)), ElementsAre(1, 2)) << "full, though the other bucket was first in order";
  EXPECT_THAT(Poll(queue, At(2)), IsEmpty());
}

TEST_F(BatchQueueBucketsTest, OfTheBucketsThatAreDueTheFirstInOrderIsNext) {
  BatchQueue queue({.max_batch_size = 4, .max_queue_delay = absl::Milliseconds(10)});
  Push(queue, {.bucket = 1, .arrival = At(0)});
  Push(queue, {.bucket = 2, .priority = 1, .arrival = At(5)});
  Push(queue, {.bucket = 3, .priority = 9, .arrival = At(9)});
  EXPECT_THAT(Poll(queue, At(15)), ElementsAre(1)) << "the third is not due, and the first lower";
  EXPECT_THAT(Poll(queue, At(15)), ElementsAre(0));
  EXPECT_THAT(Poll(queue, At(15)), IsEmpty());
}

TEST_F(BatchQueueBucketsTest, TightDeadlineHurriesItsOwnBucketOnly) {
  BatchQueue queue({.max_queue_delay = absl::Milliseconds(10)});
  Push(queue, {.bucket = 1, .arrival = At(0)});
  Push(queue, {.bucket = 2, .arrival = At(1), .deadline = At(9)});
  EXPECT_EQ(queue.ready_at(), absl::InfinitePast());
  EXPECT_THAT(Poll(queue, At(1)), ElementsAre(1));
  EXPECT_EQ(queue.ready_at(), At(10));
}

TEST_F(BatchQueueBucketsTest, QueueSizeIsOverAllBuckets) {
  BatchQueue queue({.max_batch_size = 2, .max_queue_size = 3});
  for (int bucket = 0; bucket < 3; ++bucket) Push(queue, {.bucket = bucket, .arrival = At(0)});
  EXPECT_EQ(queue.queued(), 3);
  auto [task, fate] = MakeTask({.bucket = 7, .arrival = At(0)});
  EXPECT_EQ(queue.Push(task, At(0), &dropped_).code(), absl::StatusCode::kResourceExhausted);
  // What is dead makes room, whatever its bucket.
  fates_[1]->cancellation.Cancel();
  EXPECT_TRUE(queue.Push(task, At(0), &dropped_).ok());
  EXPECT_EQ(dropped_.size(), 1u);
  EXPECT_EQ(queue.queued(), 3);
}

TEST_F(BatchQueueBucketsTest, DeadOnesLeaveNoBucketBehindThatIsDue) {
  BatchQueue queue({.max_queue_delay = absl::Milliseconds(10)});
  Push(queue, {.bucket = 1, .arrival = At(0)})->cancellation.Cancel();
  Push(queue, {.bucket = 2, .arrival = At(5)});
  EXPECT_THAT(Poll(queue, At(10)), IsEmpty());
  EXPECT_EQ(queue.ready_at(), At(15));
}

TEST_F(BatchQueueBucketsTest, ClosingMakesEveryBucketDue) {
  BatchQueue queue({.max_queue_delay = absl::Seconds(1)});
  for (int bucket = 0; bucket < 3; ++bucket) Push(queue, {.bucket = bucket, .arrival = At(bucket)});
  queue.Close();
  for (size_t i = 0; i < 3; ++i) EXPECT_THAT(Poll(queue, At(3)), ElementsAre(i));
  EXPECT_EQ(queue.ready_at(), absl::InfiniteFuture());
}

TEST_F(BatchQueueBucketsTest, TakeAllEmptiesEveryBucket) {
  BatchQueue queue({});
  for (int bucket = 0; bucket < 3; ++bucket) Push(queue, {.size = 2, .bucket = bucket, .arrival = At(0)});
  EXPECT_EQ(queue.TakeAll().size(), 3u);
  EXPECT_EQ(queue.queued(), 0);
  EXPECT_EQ(queue.ready_at(), absl::InfiniteFuture());
}

TEST_F(BatchQueueBucketsTest, HundredsOfBucketsComeOutInOrder) {
  BatchQueue queue({.max_queue_size = 1000});
  for (int i = 0; i < 500; ++i) Push(queue, {.bucket = (i * 7919) % 500, .arrival = At(i)});
  for (size_t i = 0; i < 500; ++i) ASSERT_THAT(Poll(queue, At(600)), ElementsAre(i));
}

}  // namespace
}  // namespace saccade::server
