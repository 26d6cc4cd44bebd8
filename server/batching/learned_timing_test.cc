#include "server/batching/learned_timing.h"

#include <gtest/gtest.h>

#include "server/batching/scheduler.h"
#include "server/batching/testing/recording_task.h"

namespace saccade::server {
namespace {

using absl::Milliseconds;

TEST(LearnedTimingTest, TheSchedulerTellsWhatItHasLearned) {
  Scheduler scheduler({.cores = 1});
  std::vector<Scheduler::Dropped> dropped;
  absl::Time now = absl::UnixEpoch() + absl::Hours(1);
  const Scheduler::ModelId model = scheduler.AddModel({.max_batch_size = 4}, {0});
  EXPECT_TRUE(scheduler.Learned(model).empty());
  scheduler.Learn(model, 9, 1, Milliseconds(10));
  scheduler.Learn(model, 9, 4, Milliseconds(40));
  scheduler.Learn(model, 3, 1, Milliseconds(5));
  std::unique_ptr<BatchTask> task = MakeTask({.bucket = 9, .arrival = now}).task;
  ASSERT_TRUE(scheduler.Push(model, task, now, &dropped).ok());
  ASSERT_TRUE(scheduler.Next(now, &dropped).has_value());
  now += Milliseconds(10);
  scheduler.Finished(model, 0, now, /*learn=*/true);

  const std::vector<LearnedTiming> learned = scheduler.Learned(model);
  ASSERT_EQ(learned.size(), 2U);
  EXPECT_EQ(learned[0].bucket, 3);
  EXPECT_EQ(learned[0].computed, 0) << "passes of the warm-up do not count";
  EXPECT_EQ(learned[0].smallest, 1);
  EXPECT_EQ(learned[0].largest, 1);
  EXPECT_EQ(learned[1].bucket, 9);
  EXPECT_EQ(learned[1].computed, 1);
  ASSERT_EQ(learned[1].mean.size(), 4U);
  EXPECT_NEAR(absl::ToDoubleMilliseconds(learned[1].mean[0]), 10, 0.1);
  EXPECT_NEAR(absl::ToDoubleMilliseconds(learned[1].mean[1]), 20, 0.1);
  EXPECT_NEAR(absl::ToDoubleMilliseconds(learned[1].mean[3]), 40, 0.1);
  EXPECT_EQ(learned[1].smallest, 1);
  EXPECT_EQ(learned[1].largest, 4);
  EXPECT_GT(learned[1].deviation, 0);
}

TEST(LearnedTimingTest, LargeBatchesAreNotAllTold) {
  Scheduler scheduler({.cores = 1});
  const Scheduler::ModelId model =
      scheduler.AddModel({.max_batch_size = 65536, .max_queue_size = 65536}, {0});
  scheduler.Learn(model, 9, 65536, Milliseconds(10));
  const std::vector<LearnedTiming> learned = scheduler.Learned(model);
  ASSERT_EQ(learned.size(), 1U);
  EXPECT_EQ(learned[0].mean.size(), 128U);
  EXPECT_EQ(learned[0].largest, 65536);
}

TEST(LearnedTimingTest, PassesThatTellNothingStillCount) {
  Scheduler scheduler({.cores = 1});
  std::vector<Scheduler::Dropped> dropped;
  const absl::Time now = absl::UnixEpoch() + absl::Hours(1);
  const Scheduler::ModelId model = scheduler.AddModel({.max_batch_size = 4}, {0});
  scheduler.Learn(model, 9, 1, Milliseconds(10));
  std::unique_ptr<BatchTask> task = MakeTask({.bucket = 9, .arrival = now}).task;
  ASSERT_TRUE(scheduler.Push(model, task, now, &dropped).ok());
  ASSERT_TRUE(scheduler.Next(now, &dropped).has_value());
  scheduler.Finished(model, 0, now + Milliseconds(500), /*learn=*/false);
  const std::vector<LearnedTiming> learned = scheduler.Learned(model);
  ASSERT_EQ(learned.size(), 1U);
  EXPECT_EQ(learned[0].computed, 1);
  EXPECT_NEAR(absl::ToDoubleMilliseconds(learned[0].mean[0]), 10, 0.1);
}

}  // namespace
}  // namespace saccade::server
