// Tests each invariant with a scenario that violates it.
#include "server/simulation/faults/invariants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace saccade::server::simulation {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class InvariantsTest : public ::testing::Test, public SimTask::Watcher {
 protected:
  // One model with two instances, two buckets and batches of up to two; L(b) = 5 ms + b * 0.25 ms.
  InvariantsTest() {
    ModelOptions model;
    model.instances = 2;
    model.shapes = EqualAreas(2);
    scenario_.models = {model};
    BatcherOptions batcher;
    batcher.max_batch_size = 2;
    batcher.max_queue_size = 3;
    scenario_.batchers = {batcher};
    scenario_.scheduler.cores = 2;
    scenario_.healed_at = scenario_.drain_at = 100 * kSecond;
    policy_ = std::make_unique<GroupPolicy>(
        GroupPolicy::Options{
            .scheduler = scenario_.scheduler, .batchers = scenario_.batchers, .models = scenario_.models},
        &clock_);
  }

  void OnRejected(SimTask& task, const absl::Status&) override { task.End(); }
  void OnLost(const SimTask&) override {}

  Invariants& invariants() {
    if (invariants_ == nullptr) invariants_ = std::make_unique<Invariants>(scenario_, policy_.get());
    return *invariants_;
  }

  std::unique_ptr<BatchTask> Make(int bucket, Nanos deadline, int priority = 0) {
    const Ledger::Entry entry = {.bucket = bucket, .deadline = deadline};
    BatchTask::Traits traits;
    traits.bucket = bucket;
    traits.priority = priority;
    traits.arrival = ToTime({});
    traits.deadline = ToTime(deadline);
    traits.cancellation = cancellation_;
    SimTask::Watcher* const watcher = this;
    return std::make_unique<SimTask>(std::move(traits), next_id_++, 0, entry, watcher);
  }

  std::unique_ptr<BatchTask> Taken(int bucket = 0, Nanos deadline = kSecond, int priority = 0) {
    auto task = Make(bucket, deadline, priority);
    invariants().OnTaken(AsSimTask(task), {});
    return task;
  }

  template <typename... Tasks>
  void Start(int instance, Nanos now, Tasks... tasks) {
    Policy::Batch& batch = started_.emplace_back();
    batch.instance = instance;
    (batch.tasks.push_back(std::move(tasks)), ...);
    invariants().OnStart(batch, now);
  }

  void Consider(const std::unique_ptr<BatchTask>& task, const absl::Status& said) {
    invariants().OnConsidered(AsSimTask(task), {task->bucket()}, said, {});
  }

  std::vector<std::string> violations() { return invariants().violations(); }

  Scenario scenario_;
  std::shared_ptr<Cancellation> cancellation_ = std::make_shared<Cancellation>();

  std::vector<Policy::Batch> started_;

 private:
  int64_t next_id_ = 0;
  VirtualClock clock_;
  std::unique_ptr<GroupPolicy> policy_;
  std::unique_ptr<Invariants> invariants_;
};

TEST_F(InvariantsTest, ASoundBatchIsSound) {
  auto first = Taken();
  auto second = Taken();
  Start(0, {}, std::move(first), std::move(second));
  invariants().OnSettled({}, kNever);
  EXPECT_THAT(violations(), IsEmpty());
}

TEST_F(InvariantsTest, OneBatchAnInstance) {
  Start(0, {}, Taken());
  Start(0, {}, Taken());
  EXPECT_THAT(violations(), ElementsAre(HasSubstr("instance 0 has a batch already")));
}

TEST_F(InvariantsTest, OneBucketABatch) {
  auto first = Taken(0);
  auto second = Taken(1);
  Start(0, {}, std::move(first), std::move(second));
  EXPECT_THAT(violations(), ElementsAre(HasSubstr("several buckets")));
}

TEST_F(InvariantsTest, NotMoreThanTheLargestBatch) {
  auto first = Taken();
  auto second = Taken();
  auto third = Taken();
  Start(0, {}, std::move(first), std::move(second), std::move(third));
  EXPECT_THAT(violations(), ElementsAre(HasSubstr("a batch of 3, of at most 2")));
}

TEST_F(InvariantsTest, NothingCancelledIsComputed) {
  auto task = Taken();
  cancellation_->Cancel();
  Start(0, {}, std::move(task));
  EXPECT_THAT(violations(), ElementsAre(HasSubstr("was cancelled")));
}

TEST_F(InvariantsTest, NothingStartsThatCannotEndInTime) {
  const auto well = Taken();
  invariants().OnEnd(AsSimTask(well), Outcome::kInTime, {});
  Start(0, {}, Taken(0, 5250 * kMicrosecond));
  EXPECT_THAT(violations(), IsEmpty());
  Start(1, {}, Taken(0, 4900 * kMicrosecond));
  EXPECT_THAT(violations(), ElementsAre(HasSubstr("cannot end in time")));
}

TEST_F(InvariantsTest, WhatIsNotKnownYetMayBeTried) {
  Start(0, {}, Taken(0, 4900 * kMicrosecond));
  EXPECT_THAT(violations(), IsEmpty());
}

TEST_F(InvariantsTest, EarlierDeadlinesGoFirst) {
  auto earlier = Taken(0, kSecond);
  Start(0, {}, Taken(0, 2 * kSecond));
  EXPECT_THAT(violations(), IsEmpty()) << "it may start at the same time";
  invariants().OnSettled({}, kNever);
  EXPECT_THAT(violations(), Contains(HasSubstr("which goes first")));
}

TEST_F(InvariantsTest, HigherPrioritiesGoFirst) {
  auto higher = Taken(0, 2 * kSecond, 1);
  Start(0, {}, Taken(0, kSecond, 0));
  EXPECT_THAT(violations(), IsEmpty()) << "it may start at the same time";
  invariants().OnSettled({}, kNever);
  EXPECT_THAT(violations(), Contains(HasSubstr("which goes first")));
}

TEST_F(InvariantsTest, InstancesMayStartInAnyOrderAtTheSameTime) {
  auto earlier = Taken(0, kSecond);
  Start(0, {}, Taken(0, 2 * kSecond));
  Start(1, {}, std::move(earlier));
  invariants().OnSettled({}, kNever);
  EXPECT_THAT(violations(), IsEmpty());
}

TEST_F(InvariantsTest, AnotherBucketMayGoFirst) {
  auto earlier = Taken(1, kSecond);
  Start(0, {}, Taken(0, 2 * kSecond));
  invariants().OnSettled({}, kNever);
  EXPECT_THAT(violations(), Not(Contains(HasSubstr("which goes first"))));
}

TEST_F(InvariantsTest, TheQueueHasItsBound) {
  auto tasks = std::vector<std::unique_ptr<BatchTask>>();
  for (int i = 0; i < 4; ++i) tasks.push_back(Taken());
  EXPECT_THAT(violations(), ElementsAre(HasSubstr("4 pictures wait, of at most 3")));
}

TEST_F(InvariantsTest, AClassHasItsBound) {
  scenario_.batchers.front().default_policy.max_queue_size = 1;
  auto first = Taken(0, kSecond, 1);
  auto second = Taken(0, kSecond, 0);
  EXPECT_THAT(violations(), IsEmpty());
  auto third = Taken(0, kSecond, 0);
  EXPECT_THAT(violations(), ElementsAre(HasSubstr("of class 0 wait, of at most 1")));
}

TEST_F(InvariantsTest, PassesHaveTheirCores) {
  scenario_.scheduler.cores = 1;
  Start(0, {}, Taken());
  Start(1, kMillisecond, Taken());
  EXPECT_THAT(violations(), ElementsAre(HasSubstr("passes hold 1 of 1 cores")));
}

TEST_F(InvariantsTest, NothingIsDueBesideAnIdleInstance) {
  scenario_.batchers.front().max_queue_delay = absl::Milliseconds(1);
  auto task = Taken();
  invariants().OnSettled(kMillisecond - Nanos(1), kMillisecond);
  // The policy was never given the task.
  EXPECT_THAT(violations(), ElementsAre(HasSubstr("are said to wait")));
  invariants().OnSettled(kMillisecond, 2 * kMillisecond);
  EXPECT_THAT(violations(), ElementsAre(HasSubstr("said to wait"), HasSubstr("said to wait"),
                                        HasSubstr("is due, and an instance idle")));
}

TEST_F(InvariantsTest, NobodyIsForgottenUntilAfterItsDeadline) {
  auto task = Taken();
  invariants().OnSettled({}, kNever);
  EXPECT_THAT(violations(), ElementsAre(HasSubstr("said to wait"), HasSubstr("forgotten")));
}

TEST_F(InvariantsTest, AClosedModelTakesNothing) {
  invariants().Closed(0);
  auto task = Taken();
  EXPECT_THAT(violations(), ElementsAre(HasSubstr("taken by a closed model")));
}

TEST_F(InvariantsTest, AnOpenOneIsNotUnavailable) {
  const auto task = Make(0, kSecond);
  invariants().OnRefused(AsSimTask(task), absl::UnavailableError("gone"), {});
  invariants().OnRefused(AsSimTask(task), absl::ResourceExhaustedError("full"), {});
  EXPECT_THAT(violations(), ElementsAre(HasSubstr("refused while open")));
}

TEST_F(InvariantsTest, WithoutADeadlineOnlyAFullQueueRejects) {
  const auto task = Make(0, kNever);
  Consider(task, absl::DeadlineExceededError("late"));
  EXPECT_THAT(violations(), ElementsAre(HasSubstr("has no deadline, and was rejected")));
}

TEST_F(InvariantsTest, AFullQueueRejects) {
  std::vector<std::unique_ptr<BatchTask>> tasks;
  for (int i = 0; i < 3; ++i) tasks.push_back(Taken());
  Consider(Make(0, kNever), absl::ResourceExhaustedError("full"));
  EXPECT_THAT(violations(), IsEmpty());
}

TEST_F(InvariantsTest, AnIdleModelRejectsNothingThatHasTime) {
  // A pass takes 5.25 ms.
  Consider(Make(0, 6 * kMillisecond), absl::DeadlineExceededError("late"));
  EXPECT_THAT(violations(), IsEmpty());
  Consider(Make(0, 9 * kMillisecond), absl::DeadlineExceededError("late"));
  EXPECT_THAT(violations(), ElementsAre(HasSubstr("was rejected by an idle model")));
}

TEST_F(InvariantsTest, APredictionIsNotTakenBackAtOnce) {
  scenario_.streams = {{}};
  for (int i = 0; i < 100; ++i) {
    const auto task = Make(0, kSecond);
    Consider(task, absl::OkStatus());
    invariants().OnRefused(AsSimTask(task), absl::ResourceExhaustedError("overloaded"), {});
  }
  invariants().CheckEnd(0, {}, {});
  EXPECT_THAT(violations(),
              Contains(HasSubstr("100 of 100 requests were rejected that had just been accepted")));
}

TEST_F(InvariantsTest, AClosedModelIsNotConsidered) {
  scenario_.streams = {{}};
  invariants().Closed(0);
  Consider(Make(0, kSecond), absl::OkStatus());
  EXPECT_THAT(violations(), ElementsAre(HasSubstr("was not rejected by a closed model")));
}

TEST_F(InvariantsTest, ASweepLeavesNothingLate) {
  const auto task = Taken(0, 5 * kMillisecond);
  invariants().OnSwept(6 * kMillisecond);
  EXPECT_THAT(violations(), IsEmpty()) << "swept within the last millisecond";
  invariants().OnSwept(7 * kMillisecond);
  EXPECT_THAT(violations(), ElementsAre(HasSubstr("waits after a sweep")));
}

TEST_F(InvariantsTest, ASweepLeavesNothingCancelled) {
  const auto task = Taken();
  cancellation_->Cancel();
  invariants().OnSwept({});
  EXPECT_THAT(violations(), IsEmpty());
  invariants().OnSwept(250 * kMillisecond);
  EXPECT_THAT(violations(), ElementsAre(HasSubstr("waits after a sweep")));
}

TEST_F(InvariantsTest, OnlyShortPassesRunWhereTheyWereBrought) {
  scenario_.lends = {true};
  const auto well = Taken();
  invariants().OnEnd(AsSimTask(well), Outcome::kInTime, {});
  Policy::Batch batch;
  batch.tiny = true;
  batch.tasks.push_back(Taken());
  invariants().OnStart(batch, {});
  EXPECT_THAT(violations(), ElementsAre(HasSubstr("runs on the thread that brought a request")));
}

TEST_F(InvariantsTest, ATinyPassIsSound) {
  scenario_.lends = {true};
  scenario_.models.front().latency = {.alpha = 50 * kMicrosecond, .beta = 10 * kMicrosecond};
  Policy::Batch batch;
  batch.tiny = true;
  batch.tasks.push_back(Taken());
  invariants().OnStart(batch, {});
  EXPECT_THAT(violations(), IsEmpty());
}

TEST_F(InvariantsTest, OnlyModelsThatLendThreadsHaveTinyPasses) {
  scenario_.lends = {false};
  scenario_.models.front().latency = {.alpha = 50 * kMicrosecond, .beta = 10 * kMicrosecond};
  Policy::Batch batch;
  batch.tiny = true;
  batch.tasks.push_back(Taken());
  invariants().OnStart(batch, {});
  EXPECT_THAT(violations(), ElementsAre(HasSubstr("lends no threads")));
}

TEST_F(InvariantsTest, TheThreadsOfADrainedModelEnd) {
  invariants().Closed(0);
  invariants().OnSettled({}, kNever);
  // The policy's model is open.
  EXPECT_THAT(violations(), ElementsAre(HasSubstr("threads of a drained model wait")));
}

TEST_F(InvariantsTest, TheDrainLetsNothingNewBegin) {
  scenario_.drain_at = Nanos(-1);
  Start(0, {}, Taken());
  EXPECT_THAT(violations(), ElementsAre(HasSubstr("came during the drain")));
}

TEST_F(InvariantsTest, ARetryIsComputedOnceElsewhere) {
  for (const int second : {0, 1}) {
    auto task = Taken();
    const SimTask& raw = AsSimTask(task);
    Start(0, {}, std::move(task));
    invariants().OnFinish(0, 0, {});
    invariants().OnFailed(0, 0, {});
    invariants().OnRetry(raw, 0, {});
    Start(second, {}, std::move(started_.back().tasks.front()));
    invariants().OnFinish(0, second, {});
    if (second == 1) invariants().OnRetry(raw, 1, {});
  }
  EXPECT_THAT(violations(),
              ElementsAre(HasSubstr("is retried where it failed"), HasSubstr("is retried a second time")));
}

TEST_F(InvariantsTest, ARetrySharesItsBatchWithNoOther) {
  auto task = Taken();
  const SimTask& raw = AsSimTask(task);
  invariants().OnRetry(raw, 1, {});
  auto other = Taken();
  Start(0, {}, std::move(task), std::move(other));
  EXPECT_THAT(violations(), ElementsAre(HasSubstr("shares a batch")));
}

TEST_F(InvariantsTest, AnInstanceThatFailedMayRest) {
  scenario_.batchers.front().max_queue_delay = absl::ZeroDuration();
  Start(1, {}, Taken());
  Start(0, {}, Taken());
  invariants().OnFinish(0, 0, {});
  invariants().OnFailed(0, 0, {});
  auto task = Taken();
  invariants().OnSettled({}, kMillisecond);
  EXPECT_THAT(violations(), ElementsAre(HasSubstr("said to wait")));
}

TEST_F(InvariantsTest, TheEndIsBalanced) {
  invariants().CheckEnd(1, {.lost = 1}, {.requests = 1});
  EXPECT_THAT(violations(),
              ElementsAre(HasSubstr("1 requests were lost"), HasSubstr("0 of 1 requests ended"),
                          HasSubstr("hold credit"), HasSubstr("were in time when all had healed")));
}

}  // namespace
}  // namespace saccade::server::simulation
