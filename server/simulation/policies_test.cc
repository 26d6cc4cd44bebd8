// Tests of the peers' policies with a handful of requests.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/batching/testing/recording_task.h"
#include "server/simulation/eager_policy.h"
#include "server/simulation/serving_policy.h"
#include "server/simulation/triton_policy.h"

namespace saccade::server::simulation {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::vector<ModelOptions> kOneModel = {ModelOptions{.shapes = EqualAreas(4)}};

absl::Time Ms(int64_t ms) { return ToTime(static_cast<double>(ms) * kMillisecond); }

absl::Status Push(Policy& policy, int64_t ms, int64_t bucket, absl::Time deadline = absl::InfiniteFuture()) {
  std::unique_ptr<BatchTask> task =
      MakeTask({.bucket = bucket, .arrival = Ms(ms), .deadline = deadline}).task;
  return policy.Push(0, task, Ms(ms));
}

// The buckets of the next batch's tasks.
std::vector<int64_t> Next(Policy& policy, int64_t ms) {
  std::vector<int64_t> buckets;
  if (const auto batch = policy.Next(Ms(ms))) {
    for (const auto& task : batch->tasks) buckets.push_back(task->bucket());
  }
  return buckets;
}

TEST(TritonPolicyTest, AnotherShapeSendsWhatIsBeforeIt) {
  TritonPolicy policy({.max_queue_delay = absl::Milliseconds(10)}, kOneModel);
  ASSERT_TRUE(Push(policy, 0, 1).ok());
  ASSERT_TRUE(Push(policy, 1, 1).ok());
  EXPECT_THAT(Next(policy, 1), IsEmpty());
  EXPECT_EQ(policy.wake_at(), Ms(10));
  ASSERT_TRUE(Push(policy, 2, 2).ok());
  ASSERT_TRUE(Push(policy, 2, 1).ok());
  EXPECT_THAT(Next(policy, 2), ElementsAre(1, 1));
  EXPECT_THAT(Next(policy, 2), IsEmpty());
  policy.Finished(0, 0, Ms(3), true);
  EXPECT_THAT(Next(policy, 3), ElementsAre(2));
}

TEST(TritonPolicyTest, TheDelayCountsFromTheOldest) {
  TritonPolicy policy({.max_queue_delay = absl::Milliseconds(10)}, kOneModel);
  ASSERT_TRUE(Push(policy, 0, 1).ok());
  ASSERT_TRUE(Push(policy, 9, 1).ok());
  EXPECT_THAT(Next(policy, 9), IsEmpty());
  EXPECT_THAT(Next(policy, 10), ElementsAre(1, 1));
}

TEST(TritonPolicyTest, AFullOrPreferredBatchGoesAtOnce) {
  TritonPolicy policy(
      {.max_batch_size = 4, .preferred_batch_sizes = {2}, .max_queue_delay = absl::Milliseconds(10)},
      {ModelOptions{.instances = 2}});
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Push(policy, 0, 0).ok());
  EXPECT_THAT(Next(policy, 0), ElementsAre(0, 0));
  EXPECT_THAT(Next(policy, 0), IsEmpty());
  TritonPolicy without({.max_batch_size = 2, .max_queue_delay = absl::Milliseconds(10)}, kOneModel);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Push(without, 0, 0).ok());
  EXPECT_THAT(Next(without, 0), ElementsAre(0, 0));
}

TEST(ServingPolicyTest, MixesShapesUntilFullOrTimeout) {
  ServingPolicy policy({.max_batch_size = 2, .batch_timeout = absl::Milliseconds(10)},
                       {ModelOptions{.instances = 2, .shapes = EqualAreas(4)}});
  ASSERT_TRUE(Push(policy, 0, 1).ok());
  EXPECT_THAT(Next(policy, 0), IsEmpty());
  ASSERT_TRUE(Push(policy, 1, 2).ok());
  ASSERT_TRUE(Push(policy, 2, 3).ok());
  EXPECT_THAT(Next(policy, 2), ElementsAre(1, 2));
  EXPECT_EQ(policy.wake_at(), Ms(12));
  EXPECT_THAT(Next(policy, 12), ElementsAre(3));
}

TEST(ServingPolicyTest, RefusesBeyondItsBatches) {
  ServingPolicy policy({.max_batch_size = 2, .max_enqueued_batches = 2}, kOneModel);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(Push(policy, 0, 0).ok());
  EXPECT_EQ(Push(policy, 0, 0).code(), absl::StatusCode::kUnavailable);
}

TEST(EagerPolicyTest, TakesTheEarliestDeadlinesBucketAtOnce) {
  EagerPolicy policy(2, kOneModel);
  ASSERT_TRUE(Push(policy, 0, 1, Ms(50)).ok());
  ASSERT_TRUE(Push(policy, 0, 2, Ms(40)).ok());
  ASSERT_TRUE(Push(policy, 0, 2, Ms(60)).ok());
  ASSERT_TRUE(Push(policy, 0, 2, Ms(70)).ok());
  EXPECT_THAT(Next(policy, 0), ElementsAre(2, 2));
  policy.Finished(0, 0, Ms(1), true);
  EXPECT_THAT(Next(policy, 1), ElementsAre(1));
  policy.Finished(0, 0, Ms(2), true);
  EXPECT_THAT(Next(policy, 80), IsEmpty());
  EXPECT_FALSE(Push(policy, 80, 1, Ms(70)).ok());
}

}  // namespace
}  // namespace saccade::server::simulation
