#include "server/batching/scheduler.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/batching/testing/recording_task.h"
#include "server/core/retry_hint.h"

namespace saccade::server {
namespace {

using absl::Milliseconds;
using TimeoutAction = QueuePolicy::TimeoutAction;

// One model on one core; time stands still until it is moved.
class SchedulerTest : public ::testing::Test {
 protected:
  void Make(const BatcherOptions& options, int instances = 1) {
    model_ = scheduler_.AddModel(options, Devices(instances));
  }

  // A pass over n items takes `fixed` + n * `each`; taught often enough that the deviation is close to zero.
  void Teach(int64_t bucket, absl::Duration fixed, absl::Duration each, int64_t max) {
    for (const int64_t size : {int64_t{1}, max})
      for (int i = 0; i < 1000; ++i) scheduler_.Learn(model_, bucket, size, fixed + size * each);
  }

  absl::Status Push(BatchTask::Traits traits, std::shared_ptr<Fate>* fate = nullptr) {
    if (traits.arrival == absl::UnixEpoch()) traits.arrival = now_;
    Watched watched = MakeTask(std::move(traits));
    if (fate != nullptr) *fate = watched.fate;
    return scheduler_.Push(model_, watched.task, now_, &dropped_);
  }

  // Makes the instance busy, so that later tasks are queued.
  void Occupy() {
    ASSERT_TRUE(Push({.bucket = -1}).ok());
    ASSERT_TRUE(scheduler_.Next(now_, &dropped_).has_value());
  }

  // Makes the instance idle and returns the priorities of its next batch.
  std::vector<int> NextPriorities() {
    scheduler_.Finished(model_, 0, now_, false);
    std::vector<int> priorities;
    if (const auto batch = scheduler_.Next(now_, &dropped_)) {
      for (const auto& task : batch->tasks) priorities.push_back(task->priority());
    }
    return priorities;
  }

  absl::Time now_ = absl::UnixEpoch() + absl::Hours(1);
  Scheduler scheduler_{{.cores = 1}};
  Scheduler::ModelId model_ = 0;
  std::vector<Scheduler::Dropped> dropped_;
};

TEST_F(SchedulerTest, PriorityThenDeadlineThenArrival) {
  Make({.max_batch_size = 1});
  Occupy();
  const auto at = [&](int minutes) { return now_ + absl::Minutes(minutes); };
  // Tasks are identified by priority and deadline.
  ASSERT_TRUE(Push({.priority = 1, .deadline = at(9)}).ok());
  ASSERT_TRUE(Push({.priority = 2, .deadline = at(9)}).ok());
  ASSERT_TRUE(Push({.priority = 3, .deadline = at(1)}).ok());
  ASSERT_TRUE(Push({.priority = 2, .deadline = at(5)}).ok());
  std::vector<absl::Time> deadlines;
  std::vector<int> priorities;
  for (int i = 0; i < 4; ++i) {
    scheduler_.Finished(model_, 0, now_, false);
    const auto batch = scheduler_.Next(now_, &dropped_);
    ASSERT_TRUE(batch.has_value());
    priorities.push_back(batch->tasks[0]->priority());
    deadlines.push_back(batch->tasks[0]->deadline());
  }
  EXPECT_EQ(priorities, (std::vector<int>{3, 2, 2, 1}));
  EXPECT_EQ(deadlines, (std::vector<absl::Time>{at(1), at(5), at(9), at(9)}));
}

TEST_F(SchedulerTest, BucketsAreNeverMixed) {
  Make({.max_batch_size = 8});
  Occupy();
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(Push({.bucket = i % 2}).ok());
  for (int batch = 0; batch < 2; ++batch) {
    scheduler_.Finished(model_, 0, now_, false);
    const auto next = scheduler_.Next(now_, &dropped_);
    ASSERT_TRUE(next.has_value());
    ASSERT_EQ(next->tasks.size(), 3u);
    for (const auto& task : next->tasks) EXPECT_EQ(task->bucket(), next->tasks[0]->bucket());
  }
}

TEST_F(SchedulerTest, ALargeTaskIsPassedOverButGoesFirstNext) {
  Make({.max_batch_size = 4});
  Occupy();
  ASSERT_TRUE(Push({.size = 3, .priority = 0}).ok());
  ASSERT_TRUE(Push({.size = 2, .priority = -1}).ok());
  ASSERT_TRUE(Push({.size = 1, .priority = -2}).ok());
  EXPECT_EQ(NextPriorities(), (std::vector<int>{0, -2}));
  EXPECT_EQ(NextPriorities(), (std::vector<int>{-1}));
}

TEST_F(SchedulerTest, SizesOutsideTheBatchAreRefused) {
  Make({.max_batch_size = 4});
  for (const int64_t size : {0, 5})
    EXPECT_EQ(Push({.size = size}).code(), absl::StatusCode::kInvalidArgument);
}

// A pass takes 10 ms, and 9 ms are left.
TEST_F(SchedulerTest, WhatCannotBeInTimeIsRefusedAtOnce) {
  Make({.max_batch_size = 4});
  Teach(0, Milliseconds(10), absl::ZeroDuration(), 4);
  const absl::Status refused = Push({.deadline = now_ + Milliseconds(9)});
  EXPECT_EQ(refused.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(Push({.deadline = now_ + Milliseconds(11)}), absl::OkStatus());
}

// Passes took 10 ms in the past; only another pass can tell whether they still do.
TEST_F(SchedulerTest, WhatIsRefusedForASlowPastIsTriedAgainSomeTime) {
  Make({.max_batch_size = 1});
  Teach(0, Milliseconds(10), absl::ZeroDuration(), 1);
  int refused = 0;
  while (!Push({.deadline = now_ + Milliseconds(8)}).ok()) {
    now_ += Milliseconds(8);
    ASSERT_LT(++refused, 1000);
  }
  EXPECT_GT(refused, 10);
  EXPECT_TRUE(scheduler_.Next(now_, &dropped_).has_value());
}

TEST_F(SchedulerTest, WhatWaitsTooLongToBeInTimeIsRefusedWithAHint) {
  Make({.max_batch_size = 1});
  Teach(0, Milliseconds(10), absl::ZeroDuration(), 1);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(Push({}).ok());
  const absl::Status refused = Push({.arrival = now_, .deadline = now_ + absl::Seconds(40)});
  EXPECT_EQ(refused, absl::OkStatus()) << "far later than those without a deadline";
  ASSERT_TRUE(scheduler_.Next(now_, &dropped_).has_value());
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(Push({.priority = 1}).ok());
  const absl::Status overloaded = Push({.deadline = now_ + Milliseconds(50)});
  EXPECT_EQ(overloaded.code(), absl::StatusCode::kResourceExhausted);
  const auto hint = RetryAfter(overloaded);
  ASSERT_TRUE(hint.has_value());
  EXPECT_GT(*hint, Milliseconds(100));
  EXPECT_LT(*hint, Milliseconds(400));
  EXPECT_EQ(Push({.priority = 2, .deadline = now_ + Milliseconds(50)}), absl::OkStatus());
}

// 2 ms are left when the instance becomes idle, and a pass takes 10 ms.
TEST_F(SchedulerTest, WhatWouldEndLateIsNotStarted) {
  Make({.max_batch_size = 1});
  Occupy();
  Teach(0, Milliseconds(10), absl::ZeroDuration(), 1);
  ASSERT_TRUE(Push({.deadline = now_ + Milliseconds(15)}).ok());
  now_ += Milliseconds(13);
  EXPECT_TRUE(NextPriorities().empty());
  ASSERT_EQ(dropped_.size(), 1u);
  EXPECT_EQ(dropped_[0].why.code(), absl::StatusCode::kDeadlineExceeded);
}

// A pass takes 17 ms for eight items and 14 ms for five: the first task's deadline limits the batch to five.
TEST_F(SchedulerTest, TheBatchIsAsLargeAsItsFirstDeadlineAllows) {
  Make({.max_batch_size = 8});
  Occupy();
  Teach(0, Milliseconds(9), Milliseconds(1), 8);
  for (int i = 0; i < 8; ++i)
    ASSERT_TRUE(Push({.deadline = now_ + absl::Microseconds(i == 0 ? 14'900 : 100'000)}).ok());
  EXPECT_EQ(NextPriorities().size(), 5u);
  EXPECT_EQ(NextPriorities().size(), 3u);
}

TEST_F(SchedulerTest, CancelledAndExpiredNeverRun) {
  Make({.max_batch_size = 8});
  Occupy();
  std::shared_ptr<Fate> cancelled;
  ASSERT_TRUE(Push({.priority = 9}, &cancelled).ok());
  ASSERT_TRUE(Push({.deadline = now_ + Milliseconds(1)}).ok());
  ASSERT_TRUE(Push({.priority = 1}).ok());
  cancelled->cancellation.Cancel();
  now_ += Milliseconds(1);
  EXPECT_EQ(NextPriorities(), (std::vector<int>{1}));
  ASSERT_EQ(dropped_.size(), 2u);
}

TEST_F(SchedulerTest, WhoWentAwayIsDroppedBehindABusyInstance) {
  Make({.max_batch_size = 1});
  Occupy();
  std::shared_ptr<Fate> cancelled;
  ASSERT_TRUE(Push({}, &cancelled).ok());
  ASSERT_TRUE(Push({.deadline = now_ + Milliseconds(5)}).ok());
  ASSERT_TRUE(Push({}).ok());
  cancelled->cancellation.Cancel();
  now_ += Milliseconds(5);
  scheduler_.Sweep(now_, &dropped_);
  EXPECT_EQ(dropped_.size(), 2u);
  EXPECT_EQ(scheduler_.queued(model_), 1);
}

TEST_F(SchedulerTest, AFullQueueRefusesAndAHigherPriorityTakesTheLastPlace) {
  Make({.max_batch_size = 1, .max_queue_size = 2});
  Occupy();
  ASSERT_TRUE(Push({.priority = 0}).ok());
  ASSERT_TRUE(Push({.priority = 0}).ok());
  EXPECT_EQ(Push({.priority = 0}).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(dropped_.empty());
  EXPECT_TRUE(Push({.priority = 1}).ok());
  ASSERT_EQ(dropped_.size(), 1u);
  EXPECT_EQ(dropped_[0].why.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(scheduler_.queued(model_), 2);
}

TEST_F(SchedulerTest, NobodyIsEvictedForARequestThatDoesNotFitAllTheSame) {
  Make({.max_batch_size = 8, .max_queue_size = 8});
  Occupy();
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(Push({.priority = 1}).ok());
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(Push({.priority = 0}).ok());
  EXPECT_EQ(Push({.size = 8, .priority = 1}).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(dropped_.empty());
  EXPECT_EQ(scheduler_.queued(model_), 8);
  EXPECT_TRUE(Push({.size = 2, .priority = 1}).ok());
  EXPECT_EQ(dropped_.size(), 2u);
  EXPECT_EQ(scheduler_.queued(model_), 8);
}

TEST_F(SchedulerTest, AFullQueueHintsASecondWhileNoPassHasEnded) {
  Make({.max_batch_size = 1, .max_queue_size = 1});
  Occupy();
  ASSERT_TRUE(Push({}).ok());
  EXPECT_EQ(RetryAfter(Push({})), absl::Seconds(1));
  const std::vector<int64_t> buckets = {0};
  EXPECT_EQ(RetryAfter(scheduler_.Consider(model_, {.arrival = now_}, buckets, now_, &dropped_)),
            absl::Seconds(1));
  ASSERT_TRUE(Push({.priority = 1}).ok());
  ASSERT_EQ(dropped_.size(), 1u);
  EXPECT_EQ(RetryAfter(dropped_[0].why), absl::Seconds(1));
}

TEST_F(SchedulerTest, AFullQueueHintsTenMillisecondsAtLeast) {
  Make({.max_batch_size = 1, .max_queue_size = 1});
  Occupy();
  Teach(0, absl::Microseconds(10), absl::ZeroDuration(), 1);
  ASSERT_TRUE(Push({}).ok());
  EXPECT_EQ(RetryAfter(Push({})), Milliseconds(10));
}

TEST_F(SchedulerTest, AFullQueueIsRidOfTheCancelledFirst) {
  Make({.max_batch_size = 1, .max_queue_size = 1});
  Occupy();
  std::shared_ptr<Fate> cancelled;
  ASSERT_TRUE(Push({}, &cancelled).ok());
  cancelled->cancellation.Cancel();
  EXPECT_TRUE(Push({}).ok());
  EXPECT_EQ(dropped_.size(), 1u);
}

TEST_F(SchedulerTest, LevelsHaveTheirOwnBoundsAndTimeouts) {
  BatcherOptions options{.max_batch_size = 1, .priority_levels = 2, .default_priority_level = 2};
  options.level_policies[1] = {.max_queue_size = 1};
  options.level_policies[2] = {.timeout = Milliseconds(5), .allow_timeout_override = true};
  Make(options);
  Occupy();
  ASSERT_TRUE(Push({.priority = -1}).ok());
  EXPECT_EQ(Push({.priority = -1}).code(), absl::StatusCode::kResourceExhausted);
  ASSERT_TRUE(Push({.priority = 0, .timeout = Milliseconds(2)}).ok());
  ASSERT_TRUE(Push({.priority = -2, .timeout = Milliseconds(9)}).ok());
  now_ += Milliseconds(2);
  EXPECT_EQ(NextPriorities(), (std::vector<int>{-1}));
  EXPECT_EQ(NextPriorities(), (std::vector<int>{-2})) << "its own timeout is longer than its level's";
  ASSERT_EQ(dropped_.size(), 1u);
  EXPECT_EQ(dropped_[0].task->timeout(), Milliseconds(2));
}

TEST_F(SchedulerTest, AFullLevelIsNamedAsItWasAskedFor) {
  BatcherOptions options{.max_batch_size = 1};
  options.default_policy.max_queue_size = 1;
  Make(options);
  Occupy();
  ASSERT_TRUE(Push({.priority = 7}).ok());
  EXPECT_THAT(std::string(Push({.priority = 7}).message()),
              ::testing::HasSubstr("full for priority 7: 1 of 1"));
}

TEST_F(SchedulerTest, ALevelsBoundCountsRequestsAndNotTheirItems) {
  BatcherOptions options{.max_batch_size = 8, .max_queue_size = 16};
  options.default_policy.max_queue_size = 2;
  Make(options);
  Occupy();
  ASSERT_TRUE(Push({.size = 8}).ok());
  ASSERT_TRUE(Push({.size = 8}).ok());
  EXPECT_EQ(scheduler_.queued(model_), 16);
  EXPECT_EQ(Push({.size = 1}).code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(SchedulerTest, ADelayedRequestGoesBehindAllOthers) {
  BatcherOptions options{.max_batch_size = 1};
  options.default_policy = {.timeout = Milliseconds(5), .timeout_action = TimeoutAction::kDelay};
  Make(options);
  Occupy();
  ASSERT_TRUE(Push({.priority = 7}).ok());
  now_ += Milliseconds(5);
  ASSERT_TRUE(Push({.priority = 1}).ok());
  EXPECT_EQ(NextPriorities(), (std::vector<int>{1}));
  now_ += Milliseconds(50);
  EXPECT_EQ(NextPriorities(), (std::vector<int>{7}));
  EXPECT_TRUE(dropped_.empty());
}

TEST_F(SchedulerTest, ADelayedRequestStillCountsForItsLevel) {
  BatcherOptions options{.max_batch_size = 1};
  options.default_policy = {
      .max_queue_size = 1, .timeout = Milliseconds(5), .timeout_action = TimeoutAction::kDelay};
  Make(options);
  Occupy();
  ASSERT_TRUE(Push({}).ok());
  now_ += Milliseconds(5);
  EXPECT_THAT(std::string(Push({}).message()), ::testing::HasSubstr("full for priority 0: 1 of 1"));
  EXPECT_TRUE(Push({.priority = 1}).ok()) << "another level";
  EXPECT_EQ(NextPriorities(), (std::vector<int>{1}));
  EXPECT_EQ(NextPriorities(), (std::vector<int>{0}));
  EXPECT_TRUE(Push({}).ok());
  EXPECT_TRUE(dropped_.empty());
}

TEST_F(SchedulerTest, ADelayedRequestIsEvictedByHigherPrioritiesAlone) {
  BatcherOptions options{.max_batch_size = 1, .max_queue_size = 3};
  options.default_policy = {.timeout = Milliseconds(5), .timeout_action = TimeoutAction::kDelay};
  Make(options);
  Occupy();
  for (const int priority : {2, 1}) ASSERT_TRUE(Push({.priority = priority}).ok());
  now_ += Milliseconds(5);
  ASSERT_TRUE(Push({.priority = 0}).ok());
  EXPECT_EQ(Push({.priority = 0}).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(dropped_.empty());
  // A higher priority evicts a delayed request, and then one that is not delayed.
  for (const int evicted : {1, 0}) {
    ASSERT_TRUE(Push({.priority = 2}).ok());
    ASSERT_EQ(dropped_.size(), 1u);
    EXPECT_EQ(dropped_[0].task->priority(), evicted);
    dropped_.clear();
  }
  EXPECT_EQ(Push({.priority = 2}).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(dropped_.empty());
}

TEST_F(SchedulerTest, PreferredSizesAreTakenWhereTheyFill) {
  Make({.max_batch_size = 8, .preferred_batch_sizes = {2, 4}});
  Occupy();
  for (int i = 0; i < 7; ++i) ASSERT_TRUE(Push({}).ok());
  EXPECT_EQ(NextPriorities().size(), 4u);
  EXPECT_EQ(NextPriorities().size(), 2u);
  EXPECT_EQ(NextPriorities().size(), 1u);
}

// Two models with weights 3 and 1 always have work: their shares of the only core are proportional to the
// weights.
TEST_F(SchedulerTest, WeightsShareTheDevice) {
  std::map<Scheduler::ModelId, int> passes;
  const Scheduler::ModelId heavy = scheduler_.AddModel({.max_batch_size = 1, .weight = 3}, {0});
  const Scheduler::ModelId light = scheduler_.AddModel({.max_batch_size = 1, .weight = 1}, {0});
  for (int i = 0; i < 400; ++i) {
    for (const Scheduler::ModelId model : {heavy, light}) {
      while (scheduler_.queued(model) < 4) {
        Watched watched = MakeTask({.arrival = now_});
        ASSERT_TRUE(scheduler_.Push(model, watched.task, now_, &dropped_).ok());
      }
    }
    const auto batch = scheduler_.Next(now_, &dropped_);
    ASSERT_TRUE(batch.has_value());
    EXPECT_FALSE(scheduler_.Next(now_, &dropped_).has_value()) << "there is one core";
    ++passes[batch->model];
    now_ += Milliseconds(10);
    scheduler_.Finished(batch->model, batch->instance, now_, true);
  }
  EXPECT_NEAR(passes[heavy], 300, 6);
}

// A restoration may take minutes; other models wait for it no longer than a second.
TEST_F(SchedulerTest, AVeryLongPassGivesUpItsClaimToTheCores) {
  const Scheduler::ModelId slow = scheduler_.AddModel({.max_batch_size = 1}, {0});
  const Scheduler::ModelId quick = scheduler_.AddModel({.max_batch_size = 1}, {0});
  for (const Scheduler::ModelId model : {slow, quick}) {
    Watched watched = MakeTask({.arrival = now_});
    ASSERT_TRUE(scheduler_.Push(model, watched.task, now_, &dropped_).ok());
  }
  ASSERT_EQ(scheduler_.Next(now_, &dropped_)->model, slow);
  EXPECT_FALSE(scheduler_.Next(now_, &dropped_).has_value());
  EXPECT_EQ(scheduler_.wake_at(), now_ + absl::Seconds(1));
  now_ += absl::Seconds(1);
  const auto batch = scheduler_.Next(now_, &dropped_);
  ASSERT_TRUE(batch.has_value());
  EXPECT_EQ(batch->model, quick);
  scheduler_.Finished(quick, 0, now_, true);
  scheduler_.Finished(slow, 0, now_, true);
}

// 200 items per second arrive; at most 100 can be computed.
TEST_F(SchedulerTest, UnderOverloadWhatIsComputedIsInTimeAndTheRestIsRefused) {
  Make({.max_batch_size = 8});
  Teach(0, absl::ZeroDuration(), Milliseconds(10), 8);
  std::optional<Scheduler::Batch> running;
  absl::Time ends = now_;
  int computed = 0;
  int refused = 0;
  for (int i = 0; i < 2000; ++i) {
    now_ += Milliseconds(5);
    if (running && now_ >= ends) {
      scheduler_.Finished(model_, running->instance, now_, true);
      running.reset();
    }
    const absl::Status taken = Push({.deadline = now_ + Milliseconds(60)});
    if (!taken.ok()) {
      EXPECT_EQ(taken.code(), absl::StatusCode::kResourceExhausted) << taken;
      ++refused;
    }
    if (running) continue;
    running = scheduler_.Next(now_, &dropped_);
    if (!running) continue;
    ends = now_ + Milliseconds(10) * static_cast<int64_t>(running->tasks.size());
    for (const auto& task : running->tasks) EXPECT_GE(task->deadline(), ends);
    computed += static_cast<int>(running->tasks.size());
  }
  EXPECT_GT(computed, 800) << "of the 1000 that can be";
  EXPECT_GT(refused, 100);
  for (const Scheduler::Dropped& dropped : dropped_)
    EXPECT_EQ(dropped.why.code(), absl::StatusCode::kDeadlineExceeded) << dropped.why;
  EXPECT_EQ(computed + refused + static_cast<int>(dropped_.size()) + scheduler_.queued(model_), 2000);
}

// Removed models are not asked for batches, and their id is reused for the next model.
TEST_F(SchedulerTest, ModelsGoAndOthersTakeTheirPlace) {
  const Scheduler::ModelId slow = scheduler_.AddModel({.max_batch_size = 1}, {0});
  const Scheduler::ModelId gone = scheduler_.AddModel({.max_batch_size = 1}, {0});
  model_ = scheduler_.AddModel({.max_batch_size = 1}, {0});
  const auto push = [&](Scheduler::ModelId model) {
    Watched watched = MakeTask({.arrival = now_});
    EXPECT_TRUE(scheduler_.Push(model, watched.task, now_, &dropped_).ok());
    return watched.fate;
  };
  push(slow);
  ASSERT_EQ(scheduler_.Next(now_, &dropped_)->model, slow);
  push(gone);
  push(model_);
  const auto cancelled = push(slow);
  EXPECT_EQ(scheduler_.RemoveModel(gone).size(), 1u);
  cancelled->cancellation.Cancel();
  now_ += Milliseconds(10);
  scheduler_.Sweep(now_, &dropped_);
  EXPECT_EQ(dropped_.size(), 1u) << "the instances of its model compute";
  EXPECT_FALSE(scheduler_.Next(now_, &dropped_).has_value()) << "the only core is taken";
  now_ += absl::Seconds(1);
  EXPECT_EQ(scheduler_.Next(now_, &dropped_)->model, model_);
  EXPECT_EQ(scheduler_.AddModel({.max_batch_size = 1}, {0}), gone);
  EXPECT_EQ(scheduler_.AddModel({.max_batch_size = 1}, {0}), model_ + 1);
  scheduler_.Finished(slow, 0, now_, true);
  scheduler_.Finished(model_, 0, now_, true);
}

TEST_F(SchedulerTest, WhatIsCancelledAfterItWasDueLeavesNothingToCompute) {
  Make({.max_batch_size = 8});
  Occupy();
  std::vector<std::shared_ptr<Fate>> fates(3);
  for (auto& fate : fates) ASSERT_TRUE(Push({}, &fate).ok());
  for (const auto& fate : fates) fate->cancellation.Cancel();
  EXPECT_TRUE(NextPriorities().empty());
  EXPECT_EQ(dropped_.size(), 3u);
}

// A model that needs both cores waits while a model that needs one runs. Models that fit continue meanwhile,
// but not forever.
TEST_F(SchedulerTest, ASmallModelUsesTheCoresThatAWideOneWaitsFor) {
  Scheduler scheduler({.cores = 2});
  const Scheduler::ModelId wide = scheduler.AddModel({.max_batch_size = 1, .threads = 2}, {0});
  const Scheduler::ModelId narrow = scheduler.AddModel({.max_batch_size = 1, .threads = 1}, {0, 0});
  for (const Scheduler::ModelId model : {wide, narrow}) scheduler.Learn(model, 0, 1, Milliseconds(10));
  const auto push = [&](Scheduler::ModelId model) {
    Watched watched = MakeTask({.arrival = now_});
    EXPECT_TRUE(scheduler.Push(model, watched.task, now_, &dropped_).ok());
  };
  push(narrow);
  auto running = scheduler.Next(now_, &dropped_);
  ASSERT_EQ(running->model, narrow);
  push(wide);
  int before = 0;
  for (; before < 100; ++before) {
    push(narrow);
    auto next = scheduler.Next(now_, &dropped_);
    if (!next || next->model == wide) break;
    now_ += Milliseconds(10);
    scheduler.Finished(narrow, running->instance, now_, true);
    running = std::move(next);
  }
  EXPECT_GE(before, 1);
  EXPECT_LT(before, 10);
  scheduler.Finished(narrow, running->instance, now_, true);
  const auto next = scheduler.Next(now_, &dropped_);
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(next->model, wide);
}

TEST_F(SchedulerTest, DemandCountsWhatIsRejectedToo) {
  const auto model = scheduler_.AddModel({.max_batch_size = 1, .max_queue_size = 2}, {0, 0});
  scheduler_.Learn(model, 0, 1, Milliseconds(10));
  for (int i = 0; i < 100; ++i) {
    std::unique_ptr<BatchTask> task = MakeTask({.arrival = now_}).task;
    EXPECT_EQ(scheduler_.Push(model, task, now_, &dropped_).ok(), i < 2) << i;
  }
  EXPECT_NEAR(absl::ToDoubleMilliseconds(scheduler_.TakeDemand(model)), 1000, 1) << "of one instance";
  EXPECT_EQ(scheduler_.TakeDemand(model), absl::ZeroDuration()) << "it was taken";
  // Another model needs the core for as long again.
  const auto other = scheduler_.AddModel({.max_batch_size = 1}, {0});
  scheduler_.Learn(other, 0, 1, Milliseconds(20));
  for (int i = 0; i < 50; ++i) {
    std::unique_ptr<BatchTask> task = MakeTask({.arrival = now_}).task;
    EXPECT_TRUE(scheduler_.Push(other, task, now_, &dropped_).ok());
  }
  EXPECT_NEAR(absl::ToDoubleMilliseconds(scheduler_.TakeDemand()), 2000, 2) << "of the one core";
}

TEST_F(SchedulerTest, DemandOfConsideredRequestsIsCountedOnce) {
  const auto model = scheduler_.AddModel({.max_batch_size = 1, .max_queue_size = 2}, {0});
  scheduler_.Learn(model, 0, 1, Milliseconds(10));
  for (int i = 0; i < 10; ++i) {
    std::unique_ptr<BatchTask> task = MakeTask({.arrival = now_}).task;
    const std::vector<int64_t> buckets = {0};
    if (!scheduler_.Consider(model, task->traits(), buckets, now_, &dropped_).ok()) continue;
    EXPECT_TRUE(scheduler_.Push(model, task, now_, &dropped_).ok());
  }
  EXPECT_NEAR(absl::ToDoubleMilliseconds(scheduler_.TakeDemand(model)), 100, 1);
}

// What a request costs may grow a little with the models that have requests, because the choice compares
// them, but not with a look at each of their queues.
TEST(SchedulerCostTest, ModelsWithRequestsCostLittle) {
  const auto processor_time = [](int models) {
    Scheduler scheduler({.cores = 1});
    std::vector<Scheduler::Dropped> dropped;
    absl::Time now = absl::UnixEpoch() + absl::Hours(1);
    const auto push = [&](int model) {
      std::unique_ptr<BatchTask> task = MakeTask({.arrival = now}).task;
      EXPECT_TRUE(scheduler.Push(model, task, now, &dropped).ok());
    };
    for (int model = 0; model < models; ++model) {
      scheduler.AddModel({.max_batch_size = 1}, {0});
      for (int i = 0; i < 4; ++i) push(model);
    }
    const std::clock_t begin = std::clock();
    for (int i = 0; i < 5000; ++i) {
      const auto batch = scheduler.Next(now, &dropped);
      if (!batch) return 1e9;
      push(batch->model);
      EXPECT_FALSE(scheduler.Next(now, &dropped));
      now += absl::Microseconds(100);
      scheduler.Finished(batch->model, batch->instance, now, /*learn=*/true);
    }
    return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  };
  // The least of some runs: the machine may be busy.
  double one = 1e9;
  double many = 1e9;
  for (int run = 0; run < 3; ++run) {
    one = std::min(one, processor_time(1));
    many = std::min(many, processor_time(200));
  }
  std::cout << "5,000 requests: " << 1e3 * one << " ms for one model, " << 1e3 * many << " ms for 200\n";
  EXPECT_LT(many, 8 * one);
}

}  // namespace
}  // namespace saccade::server
