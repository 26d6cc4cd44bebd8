#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/batching/instance_health.h"
#include "server/batching/scheduler.h"
#include "server/batching/testing/recording_task.h"

namespace saccade::server {
namespace {

using absl::Milliseconds;
using absl::Seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr absl::Duration kPass = Milliseconds(10);

// A model whose passes are known to take 10 ms. Instances that are broken fail at once.
class FailuresTest : public ::testing::Test {
 protected:
  void Make(const Devices& devices, const BatcherOptions& options = {.max_batch_size = 1}, int cores = 8) {
    scheduler_.emplace(SchedulerOptions{.cores = cores});
    model_ = scheduler_->AddModel(options, devices);
    for (int i = 0; i < 1000; ++i) scheduler_->Learn(model_, 0, 1, kPass);
  }

  std::shared_ptr<Fate> Push(absl::Duration deadline = Seconds(30)) {
    Watched watched = MakeTask({.arrival = now_, .deadline = now_ + deadline});
    EXPECT_TRUE(scheduler_->Push(model_, watched.task, now_, &dropped_).ok());
    return watched.fate;
  }

  std::optional<Scheduler::Batch> Next() {
    auto batch = scheduler_->Next(now_, &dropped_);
    for (auto& [task, why] : dropped_) task->Reject(why);
    dropped_.clear();
    return batch;
  }

  // Fails the batch; returns whether it was taken for a retry.
  bool Fail(Scheduler::Batch& batch) {
    return scheduler_->Failed(model_, batch.instance, now_, &batch.tasks);
  }

  void Finish(const Scheduler::Batch& batch) { scheduler_->Finished(model_, batch.instance, now_, true); }

  // Pushes items at `every` for `span`, and computes them. Passes on broken instances fail at once, others
  // end after 10 ms. Counts passes by instance, and the items that were answered with an error.
  void Play(absl::Duration span, absl::Duration every, const std::set<int>& broken) {
    const absl::Time end = now_ + span;
    absl::Time next_push = now_;
    std::multimap<absl::Time, Scheduler::Batch> running;
    while (now_ < end || !running.empty()) {
      if (now_ >= next_push && now_ < end) {
        fates_.push_back(Push());
        next_push += every;
      }
      while (auto batch = Next()) {
        ++passes_[batch->instance];
        if (!broken.contains(batch->instance)) {
          running.emplace(now_ + kPass, *std::move(batch));
        } else if (!Fail(*batch)) {
          errors_ += static_cast<int>(batch->tasks.size());
        }
      }
      now_ += Milliseconds(1);
      while (!running.empty() && running.begin()->first <= now_) {
        Finish(running.begin()->second);
        running.erase(running.begin());
      }
    }
  }

  absl::Time now_ = absl::UnixEpoch() + absl::Hours(1);
  std::optional<Scheduler> scheduler_;
  Scheduler::ModelId model_ = 0;
  std::vector<Scheduler::Dropped> dropped_;
  std::vector<std::shared_ptr<Fate>> fates_;
  std::map<int, int> passes_;
  int errors_ = 0;
};

TEST_F(FailuresTest, AFailedBatchIsRetriedOnceOnAnotherInstance) {
  Make({0, 0});
  const auto fate = Push();
  auto first = Next();
  ASSERT_TRUE(first.has_value());
  EXPECT_TRUE(Fail(*first));
  EXPECT_TRUE(first->tasks.empty());
  auto second = Next();
  ASSERT_TRUE(second.has_value());
  EXPECT_NE(second->instance, first->instance);
  EXPECT_EQ(FateOf(second->tasks.at(0)), fate);
  EXPECT_EQ(second->expected, first->expected);
  EXPECT_FALSE(Fail(*second)) << "it was tried twice";
  EXPECT_EQ(second->tasks.size(), 1u) << "its owner answers it";
  EXPECT_EQ(scheduler_->queued(model_), 0);
}

// `./dev simulate --seed 5000002` found that the gauge kept counting them.
TEST_F(FailuresTest, TheGaugeForgetsRetriesThatAreDropped) {
  Make({0, 0}, {.max_batch_size = 2});
  const auto cancelled = Push();
  Push();
  auto batch = Next();
  ASSERT_TRUE(batch.has_value());
  ASSERT_EQ(batch->tasks.size(), 2u);
  Push();
  ASSERT_TRUE(Next().has_value()) << "no instance is idle";
  ASSERT_TRUE(Fail(*batch));
  EXPECT_EQ(scheduler_->gauges(model_)->queued, 2);
  cancelled->cancellation.Cancel();
  EXPECT_FALSE(Next().has_value()) << "only the instance that failed is idle";
  EXPECT_EQ(scheduler_->queued(model_), 1);
  EXPECT_EQ(scheduler_->gauges(model_)->queued, 1);
}

TEST_F(FailuresTest, AModelWithOneInstanceDoesNotRetry) {
  Make({0});
  Push();
  auto batch = Next();
  EXPECT_FALSE(Fail(*batch));
  Push();
  EXPECT_TRUE(Next().has_value()) << "the instance is idle at once, because no other could compute";
}

TEST_F(FailuresTest, AnotherDeviceIsPreferred) {
  Make({0, 0, 1});
  Push();
  auto first = Next();
  ASSERT_EQ(first->instance, 0);
  // The instance on the other device is busy; the idle one beside the failed one does not take the batch.
  Push();
  auto other = Next();
  while (other->instance != 2) {
    Push();
    other = Next();
  }
  ASSERT_TRUE(Fail(*first));
  EXPECT_FALSE(Next().has_value());
  EXPECT_EQ(scheduler_->queued(model_), 1);
  now_ += kPass;
  Finish(*other);
  const auto retry = Next();
  ASSERT_TRUE(retry.has_value());
  EXPECT_EQ(retry->instance, 2);
}

TEST_F(FailuresTest, ARetryGoesBeforeWhatIsQueued) {
  Make({0, 0});
  auto fate = Push();
  auto first = Next();
  Push();
  auto second = Next();
  for (int i = 0; i < 5; ++i) Push();
  ASSERT_TRUE(Fail(*first));
  now_ += kPass;
  Finish(*second);
  // Both instances are free now; the retry and a queued item start.
  const auto retry = Next();
  ASSERT_TRUE(retry.has_value());
  EXPECT_EQ(FateOf(retry->tasks.at(0)), fate);
  EXPECT_EQ(retry->instance, second->instance);
}

TEST_F(FailuresTest, AnInstanceThatFailsFastIsNotIdleFirst) {
  Make({0, 0});
  Push();
  auto first = Next();
  Push();
  ASSERT_TRUE(Next().has_value());
  ASSERT_TRUE(Fail(*first));
  Push();
  EXPECT_FALSE(Next().has_value());
  EXPECT_EQ(scheduler_->wake_at(), now_ + kPass) << "its pass should have ended then";
  now_ += kPass;
  ASSERT_TRUE(Next().has_value());
}

TEST_F(FailuresTest, OneBrokenInstanceOfFourCostsNoRequestAndLittleWork) {
  Make({0, 1, 2, 3});
  // 300 items a second, for which three instances suffice.
  Play(Seconds(20), Milliseconds(4), {1});
  EXPECT_EQ(errors_, 0);
  for (const auto& fate : fates_) EXPECT_EQ(fate->rejections, 0) << fate->why;
  // Three failures before it is set aside, and probes after 1, 3, 7 and 15 seconds.
  EXPECT_LE(passes_[1], 3 + 3 + 5);
  EXPECT_GE(passes_[1], 3 + 4);
  EXPECT_EQ(scheduler_->set_aside(model_), 1);
  EXPECT_EQ(passes_[0] + passes_[2] + passes_[3], static_cast<int>(fates_.size()));
}

TEST_F(FailuresTest, WithoutOthersFreeABrokenInstanceTakesNoMoreThanItsShare) {
  Make({0, 1, 2, 3}, {.max_batch_size = 1, .max_queue_size = 100000});
  // More than all can do, until the first verdicts are there.
  Play(Milliseconds(60), Milliseconds(1), {2});
  const int total = passes_[0] + passes_[1] + passes_[2] + passes_[3];
  EXPECT_LE(passes_[2], total / 4);
}

TEST_F(FailuresTest, ASetAsideInstanceIsProbedWithBackoffAndComesBack) {
  Make({0, 1});
  Play(Milliseconds(500), Milliseconds(20), {0});
  EXPECT_EQ(scheduler_->set_aside(model_), 1);
  auto changes = scheduler_->TakeChanges(model_);
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].instance, 0);
  EXPECT_TRUE(changes[0].set_aside);
  const int before = passes_[0];
  Play(Seconds(2), Milliseconds(20), {0});
  EXPECT_EQ(passes_[0] - before, 1) << "the first probe, after a second; the next would be two seconds later";
  Play(Seconds(2), Milliseconds(20), {});
  EXPECT_EQ(scheduler_->set_aside(model_), 0);
  changes = scheduler_->TakeChanges(model_);
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_FALSE(changes[0].set_aside);
  EXPECT_GT(passes_[0] - before, 10);
  EXPECT_EQ(errors_, 0);
}

// Bad input fails everywhere. It must not take instances away from sound requests.
TEST_F(FailuresTest, BadInputSetsNothingAside) {
  Make({0, 1, 2});
  for (int i = 0; i < 50; ++i) {
    Push();
    auto first = Next();
    ASSERT_TRUE(first.has_value()) << i;
    ASSERT_TRUE(Fail(*first));
    auto second = Next();
    ASSERT_TRUE(second.has_value()) << i;
    ASSERT_FALSE(Fail(*second));
    now_ += kPass;
  }
  EXPECT_EQ(scheduler_->set_aside(model_), 0);
}

TEST_F(FailuresTest, TheLastInstanceInServiceStays) {
  Make({0, 1});
  Play(Milliseconds(500), Milliseconds(20), {0});
  ASSERT_EQ(scheduler_->set_aside(model_), 1);
  // Now the other one breaks as well. Its failures are answered, and it is used all the same.
  const int before = passes_[1];
  Play(Milliseconds(300), Milliseconds(20), {0, 1});
  EXPECT_EQ(scheduler_->set_aside(model_), 1);
  EXPECT_GT(errors_, 10);
  EXPECT_GT(passes_[1] - before, 10);
}

TEST_F(FailuresTest, AnInstanceThatLostItsDeviceTakesNoMoreBatches) {
  Make({0, 1});
  Push();
  auto first = Next();
  const int lost = first->instance;
  ASSERT_TRUE(scheduler_->Failed(model_, lost, now_, &first->tasks, /*lost=*/true));
  EXPECT_EQ(scheduler_->set_aside(model_), 1) << "without further failures";
  const auto retry = Next();
  ASSERT_TRUE(retry.has_value());
  EXPECT_NE(retry->instance, lost);
  now_ += kPass;
  Finish(*retry);
  // Longer than any pause between two probes.
  now_ += absl::Hours(1);
  Push();
  Push();
  const auto batch = Next();
  ASSERT_TRUE(batch.has_value());
  EXPECT_NE(batch->instance, lost);
  EXPECT_FALSE(Next().has_value()) << "it is never probed";
  now_ += kPass;
  Finish(*batch);
  EXPECT_EQ(scheduler_->RemoveModel(model_).size(), 1u);
}

TEST_F(FailuresTest, RequestsAreAnsweredWhenAllDevicesAreLost) {
  Make({0, 1});
  Push();
  auto first = Next();
  ASSERT_TRUE(scheduler_->Failed(model_, first->instance, now_, &first->tasks, /*lost=*/true));
  auto retry = Next();
  ASSERT_TRUE(retry.has_value());
  EXPECT_FALSE(scheduler_->Failed(model_, retry->instance, now_, &retry->tasks, /*lost=*/true));
  EXPECT_EQ(retry->tasks.size(), 1u) << "its owner answers it";
  EXPECT_EQ(scheduler_->set_aside(model_), 1);
  Push();
  const auto next = Next();
  ASSERT_TRUE(next.has_value()) << "the last instance in service takes it, at once";
  EXPECT_EQ(next->instance, retry->instance);
}

TEST_F(FailuresTest, AProbeThatFindsTheDeviceLostIsTheLast) {
  Make({0, 1});
  Play(Milliseconds(500), Milliseconds(20), {0});
  ASSERT_EQ(scheduler_->set_aside(model_), 1);
  now_ += Seconds(1);
  Push();
  auto probe = Next();
  ASSERT_TRUE(probe.has_value());
  ASSERT_EQ(probe->instance, 0);
  ASSERT_TRUE(scheduler_->Failed(model_, 0, now_, &probe->tasks, /*lost=*/true));
  EXPECT_EQ(scheduler_->set_aside(model_), 1) << "counted once";
  const int before = passes_[0];
  Play(absl::Minutes(3), Milliseconds(100), {0});
  EXPECT_EQ(passes_[0], before);
}

TEST_F(FailuresTest, ASuccessInBetweenForgivesFailures) {
  InstanceHealth health;
  const auto at = [](double ms) { return NanoTime() + ms * kMillisecond; };
  EXPECT_FALSE(health.Failed(at(1)));
  EXPECT_FALSE(health.Failed(at(2)));
  EXPECT_FALSE(health.Succeeded(at(3)));
  EXPECT_FALSE(health.Failed(at(2.5))) << "the verdict on a pass before the success does not count";
  EXPECT_FALSE(health.Failed(at(4)));
  EXPECT_FALSE(health.Failed(at(5)));
  EXPECT_TRUE(health.Failed(at(6)));
  health.SetAside();
  for (const double seconds : {1, 2, 4, 8, 16, 32, 60, 60}) EXPECT_EQ(health.NextPause(), seconds * kSecond);
  EXPECT_TRUE(health.Succeeded(at(7)));
  EXPECT_FALSE(health.aside());
  EXPECT_EQ(InstanceHealth::kMinPause, health.NextPause()) << "it begins anew";
}

TEST_F(FailuresTest, ARetryThatCannotBeInTimeOrWasCancelledEnds) {
  Make({0, 0});
  const auto late = Push(Milliseconds(15));
  auto first = Next();
  now_ += Milliseconds(8);
  ASSERT_TRUE(Fail(*first));
  EXPECT_FALSE(Next().has_value());
  ASSERT_EQ(late->rejections, 1);
  EXPECT_EQ(late->why.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(late->why.message(), HasSubstr("a forward pass failed"));
  now_ += kPass;
  const auto cancelled = Push();
  first = Next();
  ASSERT_TRUE(Fail(*first));
  cancelled->cancellation.Cancel();
  EXPECT_FALSE(Next().has_value());
  ASSERT_EQ(cancelled->rejections, 1);
  EXPECT_EQ(cancelled->why.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(scheduler_->queued(model_), 0);
}

// A request with too little time is tried because the estimate is doubted, and its pass fails. Before the
// retry begins, another pass shows that the estimate was right.
TEST_F(FailuresTest, ARetryIsJudgedByWhatIsKnownWhenItBegins) {
  Make({0, 0});
  Watched hasty;
  const auto push_hasty = [&] {
    hasty = MakeTask({.arrival = now_, .deadline = now_ + absl::Microseconds(8500)});
    return scheduler_->Push(model_, hasty.task, now_, &dropped_).ok();
  };
  ASSERT_FALSE(push_hasty()) << "from here on nothing is computed for long";
  now_ += Seconds(1);
  const auto other = Push();
  const auto confirming = Next();
  now_ += Milliseconds(9);
  for (int i = 0; !push_hasty(); ++i) ASSERT_LT(i, 5);
  auto probe = Next();
  ASSERT_TRUE(probe.has_value());
  EXPECT_LT(probe->expected, Milliseconds(7.5));
  ASSERT_TRUE(Fail(*probe));
  now_ += Milliseconds(1);
  Finish(*confirming);
  EXPECT_FALSE(Next().has_value()) << "7.5 ms are left for a pass of 10 ms";
  EXPECT_EQ(hasty.fate->rejections, 1);
  EXPECT_EQ(hasty.fate->why.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(other->rejections, 0);
}

TEST_F(FailuresTest, AClosedModelRetriesNothingNewAndGivesBackWhatWaits) {
  Make({0, 0});
  Push();
  auto first = Next();
  Push();
  auto second = Next();
  ASSERT_TRUE(Fail(*first));
  scheduler_->Close(model_);
  EXPECT_EQ(scheduler_->queued(model_), 1) << "what was taken before is still computed";
  EXPECT_FALSE(Fail(*second));
  EXPECT_EQ(scheduler_->RemoveModel(model_).size(), 1u);
}

TEST_F(FailuresTest, ManyRetriesAreBounded) {
  Make({0, 1}, {.max_batch_size = 1, .max_queue_size = 2});
  Push();
  auto first = Next();
  Push();
  auto slow = Next();
  ASSERT_TRUE(slow.has_value());
  int retried = 0;
  for (int i = 0; i < 4; ++i) {
    retried += Fail(*first) ? 1 : 0;
    now_ += kPass;
    Push();
    first = Next();
    ASSERT_TRUE(first.has_value());
    ASSERT_NE(first->instance, slow->instance);
  }
  EXPECT_EQ(retried, 2);
}

TEST_F(FailuresTest, ASkippedBatchJudgesNothing) {
  Make({0, 1});
  for (int i = 0; i < 10; ++i) {
    Push();
    auto first = Next();
    ASSERT_TRUE(Fail(*first));
    auto retry = Next();
    ASSERT_TRUE(retry.has_value());
    // Its only task was cancelled before the pass began.
    scheduler_->Skipped(model_, retry->instance, now_);
    now_ += kPass;
  }
  EXPECT_EQ(scheduler_->set_aside(model_), 0);
}

TEST_F(FailuresTest, RetriesWaitForCores) {
  Make({0, 0, 0}, {.max_batch_size = 1}, /*cores=*/1);
  Push();
  auto first = Next();
  Push();
  EXPECT_FALSE(Next().has_value());
  ASSERT_TRUE(Fail(*first));
  auto retry = Next();
  ASSERT_TRUE(retry.has_value());
  EXPECT_FALSE(Next().has_value()) << "one core, one pass";
  Finish(*retry);
  EXPECT_TRUE(Next().has_value());
}

}  // namespace
}  // namespace saccade::server
