#include "server/batching/batch_queue.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/batching/recording_task.h"

namespace saccade::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const absl::Time kStart = absl::FromUnixSeconds(1000);

absl::Time At(int milliseconds) { return kStart + absl::Milliseconds(milliseconds); }

class BatchQueueTest : public ::testing::Test {
 protected:
  // Pushes at the task's arrival.
  absl::Status Push(BatchQueue& queue, BatchTask::Traits traits) {
    return PushAt(queue, traits.arrival, traits);
  }

  absl::Status PushAt(BatchQueue& queue, absl::Time now, BatchTask::Traits traits) {
    auto [task, fate] = MakeTask(std::move(traits));
    fates_.push_back(fate);
    const absl::Status taken = queue.Push(task, now, &dropped_);
    EXPECT_EQ(taken.ok(), task == nullptr) << "ownership moves exactly if OK";
    return taken;
  }

  // The indices, in order of Push, of what Poll hands out.
  std::vector<int> Poll(BatchQueue& queue, absl::Time now) {
    BatchQueue::Polled polled = queue.Poll(now);
    for (auto& dropped : polled.dropped) dropped_.push_back(std::move(dropped));
    std::vector<int> indices;
    for (const auto& task : polled.batch) {
      const auto it = std::find(fates_.begin(), fates_.end(), FateOf(task));
      indices.push_back(static_cast<int>(it - fates_.begin()));
    }
    return indices;
  }

  std::vector<std::shared_ptr<Fate>> fates_;
  std::vector<BatchQueue::Dropped> dropped_;
};

TEST_F(BatchQueueTest, OrdersByPriorityThenDeadlineThenArrivalThenPush) {
  BatchQueue queue({.max_batch_size = 1});
  ASSERT_TRUE(Push(queue, {.arrival = At(3)}).ok());
  ASSERT_TRUE(Push(queue, {.arrival = At(3), .deadline = At(500)}).ok());
  ASSERT_TRUE(Push(queue, {.arrival = At(4), .deadline = At(400)}).ok());
  ASSERT_TRUE(Push(queue, {.priority = 1, .arrival = At(5)}).ok());
  ASSERT_TRUE(Push(queue, {.priority = -1, .arrival = At(1), .deadline = At(300)}).ok());
  ASSERT_TRUE(PushAt(queue, At(6), {.arrival = At(2)}).ok());
  ASSERT_TRUE(PushAt(queue, At(7), {.arrival = At(2)}).ok());
  std::vector<int> order;
  for (int i = 0; i < 7; ++i) order.push_back(Poll(queue, At(10)).at(0));
  EXPECT_THAT(order, ElementsAre(3, 2, 1, 5, 6, 0, 4));
  EXPECT_EQ(queue.queued(), 0);
}

TEST_F(BatchQueueTest, EmptyQueueHasNothingToHandOut) {
  BatchQueue queue({});
  EXPECT_EQ(queue.ready_at(), absl::InfiniteFuture());
  EXPECT_THAT(Poll(queue, At(0)), IsEmpty());
}

TEST_F(BatchQueueTest, WithoutDelayALoneRequestIsDueAtOnce) {
  BatchQueue queue({});
  ASSERT_TRUE(Push(queue, {.arrival = At(5)}).ok());
  EXPECT_LE(queue.ready_at(), At(5));
  EXPECT_THAT(Poll(queue, At(5)), ElementsAre(0));
  EXPECT_EQ(queue.ready_at(), absl::InfiniteFuture());
}

TEST_F(BatchQueueTest, DelayCountsFromTheOldestArrival) {
  BatchQueue queue({.max_queue_delay = absl::Milliseconds(10)});
  // Arrived at 0, came out of the decode pool at 7.
  ASSERT_TRUE(PushAt(queue, At(7), {.arrival = At(0)}).ok());
  ASSERT_TRUE(PushAt(queue, At(8), {.arrival = At(4)}).ok());
  EXPECT_EQ(queue.ready_at(), At(10));
  EXPECT_THAT(Poll(queue, At(9)), IsEmpty());
  EXPECT_THAT(Poll(queue, At(10)), ElementsAre(0, 1));
}

TEST_F(BatchQueueTest, OldestCountsEvenIfItIsLastInOrder) {
  BatchQueue queue({.max_queue_delay = absl::Milliseconds(10)});
  ASSERT_TRUE(Push(queue, {.priority = -5, .arrival = At(0)}).ok());
  ASSERT_TRUE(Push(queue, {.priority = 5, .arrival = At(9)}).ok());
  EXPECT_THAT(Poll(queue, At(10)), ElementsAre(1, 0));
}

TEST_F(BatchQueueTest, RequestThatWaitedBehindABusyInstanceIsNotMadeToWaitAgain) {
  BatchQueue queue({.max_batch_size = 2, .max_queue_delay = absl::Milliseconds(10)});
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Push(queue, {.arrival = At(i)}).ok());
  EXPECT_THAT(Poll(queue, At(50)), ElementsAre(0, 1));
  EXPECT_EQ(queue.ready_at(), At(12));
  EXPECT_THAT(Poll(queue, At(50)), ElementsAre(2));
}

TEST_F(BatchQueueTest, FullBatchIsDueAtOnce) {
  BatchQueue queue({.max_batch_size = 4, .max_queue_delay = absl::Seconds(1)});
  ASSERT_TRUE(Push(queue, {.size = 3, .arrival = At(0)}).ok());
  EXPECT_THAT(Poll(queue, At(1)), IsEmpty());
  ASSERT_TRUE(Push(queue, {.size = 1, .arrival = At(1)}).ok());
  EXPECT_EQ(queue.ready_at(), absl::InfinitePast());
  EXPECT_THAT(Poll(queue, At(1)), ElementsAre(0, 1));
}

TEST_F(BatchQueueTest, CancelledRequestsDoNotMakeABatchFull) {
  BatchQueue queue({.max_batch_size = 4, .max_queue_delay = absl::Seconds(1)});
  ASSERT_TRUE(Push(queue, {.size = 3, .arrival = At(0)}).ok());
  ASSERT_TRUE(Push(queue, {.size = 1, .arrival = At(1)}).ok());
  fates_[0]->cancellation.Cancel();
  EXPECT_THAT(Poll(queue, At(1)), IsEmpty());
  EXPECT_EQ(dropped_.size(), 1u);
  EXPECT_EQ(queue.ready_at(), At(1001)) << "the oldest is now the second";
}

TEST_F(BatchQueueTest, WaitsNotIfWaitingWouldPassADeadline) {
  BatchQueue queue({.max_queue_delay = absl::Milliseconds(10)});
  ASSERT_TRUE(Push(queue, {.arrival = At(0)}).ok());
  EXPECT_THAT(Poll(queue, At(1)), IsEmpty());
  ASSERT_TRUE(Push(queue, {.arrival = At(1), .deadline = At(10)}).ok());
  EXPECT_THAT(Poll(queue, At(1)), ElementsAre(1, 0));
  ASSERT_TRUE(Push(queue, {.arrival = At(20), .deadline = At(31)}).ok());
  EXPECT_THAT(Poll(queue, At(20)), IsEmpty()) << "there is time to wait";
}

TEST_F(BatchQueueTest, ClosingMakesDueAndRefuses) {
  BatchQueue queue({.max_queue_delay = absl::Seconds(1)});
  ASSERT_TRUE(Push(queue, {.arrival = At(0)}).ok());
  queue.Close();
  EXPECT_EQ(Push(queue, {.arrival = At(1)}).code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(Poll(queue, At(1)), ElementsAre(0));
}

TEST_F(BatchQueueTest, NeverSplitsNorExceedsAndFillsWithSmallerOnes) {
  BatchQueue queue({.max_batch_size = 8});
  for (int64_t size : {5, 5, 2, 4, 1}) ASSERT_TRUE(Push(queue, {.size = size, .arrival = At(0)}).ok());
  EXPECT_EQ(queue.queued(), 17);
  EXPECT_THAT(Poll(queue, At(0)), ElementsAre(0, 2, 4));
  EXPECT_THAT(Poll(queue, At(0)), ElementsAre(1)) << "passed over once, then first";
  EXPECT_THAT(Poll(queue, At(0)), ElementsAre(3));
}

TEST_F(BatchQueueTest, LargeTaskIsNotStarvedBySmallOnes) {
  BatchQueue queue({.max_batch_size = 4});
  ASSERT_TRUE(Push(queue, {.size = 1, .arrival = At(0)}).ok());
  ASSERT_TRUE(Push(queue, {.size = 4, .arrival = At(0)}).ok());
  for (int i = 1; i <= 100; ++i) ASSERT_TRUE(Push(queue, {.size = 1, .arrival = At(i)}).ok());
  EXPECT_THAT(Poll(queue, At(200)), ElementsAre(0, 2, 3, 4));
  EXPECT_THAT(Poll(queue, At(200)), ElementsAre(1));
}

TEST_F(BatchQueueTest, RefusesSizesThatNoBatchCanHold) {
  BatchQueue queue({.max_batch_size = 4});
  const absl::Status large = Push(queue, {.size = 5, .arrival = At(0)});
  EXPECT_EQ(large.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(large.message()), HasSubstr("holds 5 pictures; this model takes 1 to 4"));
  EXPECT_EQ(Push(queue, {.size = 0, .arrival = At(0)}).code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(BatchQueueTest, FullQueueRefuses) {
  BatchQueue queue({.max_batch_size = 4, .max_queue_size = 5});
  ASSERT_TRUE(Push(queue, {.size = 4, .arrival = At(0)}).ok());
  const absl::Status refused = Push(queue, {.size = 2, .arrival = At(0)});
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("4 of 5 pictures"));
  EXPECT_TRUE(Push(queue, {.size = 1, .arrival = At(0)}).ok());
  EXPECT_EQ(queue.queued(), 5);
}

TEST_F(BatchQueueTest, FullQueueIsSweptBeforeItRefuses) {
  BatchQueue queue({.max_batch_size = 2, .max_queue_size = 3});
  ASSERT_TRUE(Push(queue, {.arrival = At(0)}).ok());
  ASSERT_TRUE(Push(queue, {.arrival = At(0), .deadline = At(5)}).ok());
  ASSERT_TRUE(Push(queue, {.arrival = At(0)}).ok());
  fates_[0]->cancellation.Cancel();
  EXPECT_TRUE(Push(queue, {.size = 2, .arrival = At(5)}).ok());
  ASSERT_EQ(dropped_.size(), 2u);
  EXPECT_EQ(dropped_[0].why.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(dropped_[1].why.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(queue.queued(), 3);
}

TEST_F(BatchQueueTest, DeadTasksAreRefusedAtTheDoor) {
  BatchQueue queue({.queue_timeout = absl::Milliseconds(50)});
  const absl::Status late = PushAt(queue, At(7), {.arrival = At(0), .deadline = At(7)});
  EXPECT_EQ(late.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(late.message()), HasSubstr("has waited 7ms and had 7ms"));
  auto [task, fate] = MakeTask({.arrival = At(0)});
  fate->cancellation.Cancel();
  EXPECT_EQ(queue.Push(task, At(0), &dropped_).code(), absl::StatusCode::kCancelled);
  EXPECT_NE(task, nullptr);
  const absl::Status timed_out = PushAt(queue, At(50), {.arrival = At(0)});
  EXPECT_EQ(timed_out.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(timed_out.message()), HasSubstr("queue_timeout is 50ms"));
}

TEST_F(BatchQueueTest, PollDropsTheDeadAndTellsWhy) {
  BatchQueue queue({.queue_timeout = absl::Milliseconds(50)});
  ASSERT_TRUE(Push(queue, {.arrival = At(0), .deadline = At(20)}).ok());
  ASSERT_TRUE(Push(queue, {.priority = 1, .arrival = At(10)}).ok());
  ASSERT_TRUE(Push(queue, {.priority = -1, .arrival = At(11)}).ok());
  ASSERT_TRUE(Push(queue, {.arrival = At(30)}).ok());
  fates_[1]->cancellation.Cancel();
  EXPECT_THAT(Poll(queue, At(61)), ElementsAre(3));
  ASSERT_EQ(dropped_.size(), 3u);
  EXPECT_EQ(dropped_[0].why.code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(std::string(dropped_[1].why.message()), HasSubstr("has waited 61ms and had 20ms"));
  EXPECT_THAT(std::string(dropped_[2].why.message()), HasSubstr("waited 50ms"));
}

TEST(BatchTaskTest, DropDeadRejectsOnlyTheDead) {
  std::vector<std::unique_ptr<BatchTask>> tasks;
  std::vector<std::shared_ptr<Fate>> fates;
  for (int deadline : {100, 5, 100, 100}) {
    auto [task, fate] = MakeTask({.arrival = At(0), .deadline = At(deadline)});
    tasks.push_back(std::move(task));
    fates.push_back(fate);
  }
  fates[3]->cancellation.Cancel();
  DropDead(tasks, At(5));
  ASSERT_EQ(tasks.size(), 2u);
  EXPECT_EQ(FateOf(tasks[0]), fates[0]);
  EXPECT_EQ(FateOf(tasks[1]), fates[2]);
  EXPECT_EQ(fates[1]->why.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(fates[3]->why.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(fates[1]->rejections + fates[3]->rejections, 2);
  EXPECT_EQ(fates[0]->rejections + fates[2]->rejections, 0);
}

TEST(BatcherOptionsTest, SaysWhatIsWrong) {
  const auto message = [](const BatcherOptions& options) {
    return std::string(CheckOptions(options).message());
  };
  EXPECT_TRUE(CheckOptions({}).ok());
  EXPECT_THAT(message({.max_batch_size = 0}), HasSubstr("max_batch_size is 0"));
  EXPECT_THAT(message({.max_batch_size = 8, .max_queue_size = 7}), HasSubstr("max_queue_size is 7"));
  EXPECT_THAT(message({.max_queue_delay = absl::Milliseconds(-1)}), HasSubstr("max_queue_delay is -1ms"));
  EXPECT_THAT(message({.max_queue_delay = absl::InfiniteDuration()}), HasSubstr("has to be finite"));
  EXPECT_THAT(message({.max_queue_delay = absl::Seconds(1), .queue_timeout = absl::Seconds(1)}),
              HasSubstr("longer than max_queue_delay"));
}

}  // namespace
}  // namespace saccade::server
