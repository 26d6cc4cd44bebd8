// What a scheduler still does after an allocation has failed.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <vector>

#include "gtest/gtest.h"
#include "server/batching/bucket.h"
#include "server/batching/device_model.h"
#include "server/batching/model_queue.h"
#include "server/batching/scheduler.h"
#include "server/batching/testing/recording_task.h"
#include "server/core/fake_clock.h"
#include "server/core/testing/failing_allocations.h"

namespace saccade::server {
namespace {

constexpr absl::Duration kPass = absl::Milliseconds(10);

// Calls `act` with its allocation of this number failing; returns whether there was one.
template <typename Act>
bool Fails(int64_t number, const Act& act) {
  bool failed = false;
  testing::FailAllocation(number);
  try {
    act();
  } catch (const std::bad_alloc&) {
    failed = true;
  }
  testing::FailAllocation(-1);
  return failed;
}

// A model with two instances, whose passes are known to take 10 ms.
class Two {
 public:
  Two() {
    for (int i = 0; i < 100; ++i) scheduler.Learn(model, 0, 1, kPass);
  }

  void Push() {
    Watched watched = MakeTask({.arrival = now});
    EXPECT_TRUE(scheduler.Push(model, watched.task, now, &dropped).ok());
  }

  std::optional<Scheduler::Batch> Next() { return scheduler.Next(now, &dropped); }

  // The number of passes that start when there is enough to do.
  int StartAll() {
    now += kPass;
    for (int i = 0; i < 4; ++i) Push();
    int started = 0;
    while (Next()) ++started;
    return started;
  }

  Scheduler scheduler{{.cores = 2}};
  Scheduler::ModelId model = scheduler.AddModel({.max_batch_size = 1}, {0, 0});
  absl::Time now = absl::UnixEpoch() + absl::Hours(1);
  std::vector<Scheduler::Dropped> dropped;
};

class BatchingMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!testing::FailAllocation(-1)) GTEST_SKIP() << "no allocation can be made to fail";
  }
};

TEST_F(BatchingMemoryTest, ABatchThatCannotStartTakesNoInstance) {
  int64_t failures = 0;
  for (bool failed = true; failed; ++failures) {
    Two two;
    two.Push();
    std::optional<Scheduler::Batch> batch;
    failed = Fails(failures, [&] { batch = two.Next(); });
    if (!failed) continue;
    EXPECT_EQ(two.StartAll(), 2) << "after allocation " << failures;
  }
  EXPECT_GT(failures, 1);
}

TEST_F(BatchingMemoryTest, AnInstanceWhosePassEndsIsFree) {
  Two two;
  for (int i = 0; i < 3; ++i) two.Push();
  const auto batch = two.Next();
  ASSERT_TRUE(batch);
  ASSERT_TRUE(two.Next());
  EXPECT_FALSE(Fails(0, [&] { two.scheduler.Finished(two.model, batch->instance, two.now, true); }));
  EXPECT_TRUE(two.Next());
}

TEST_F(BatchingMemoryTest, WithoutMemoryForARetryThereIsNone) {
  Two two;
  two.Push();
  auto batch = two.Next();
  ASSERT_TRUE(batch);
  bool retried = true;
  EXPECT_FALSE(
      Fails(0, [&] { retried = two.scheduler.Failed(two.model, batch->instance, two.now, &batch->tasks); }));
  EXPECT_FALSE(retried);
  EXPECT_EQ(batch->tasks.size(), 1u) << "its owner answers it";
  EXPECT_EQ(two.scheduler.queued(two.model), 0);
  EXPECT_EQ(two.StartAll(), 2);
}

TEST_F(BatchingMemoryTest, ARequestThatCannotBeDelayedStaysWhereItIs) {
  constexpr NanoTime kStart = NanoTime() + kSecond;
  int64_t failures = 0;
  for (bool failed = true; failed; ++failures) {
    BatcherOptions options{.max_batch_size = 1};
    options.default_policy = {.timeout = absl::Milliseconds(5),
                              .timeout_action = QueuePolicy::TimeoutAction::kDelay};
    ModelQueue queue(options);
    ModelQueue::Dropped dropped;
    for (int i = 0; i < 20; ++i) {
      Watched watched = MakeTask({.arrival = kStart.ToTime()});
      ASSERT_TRUE(queue.Push(watched.task, kStart, Nanos(), /*instances=*/1, &dropped).ok());
    }
    const NanoTime late = kStart + 5 * kMillisecond;
    failed = Fails(failures, [&] { queue.SweepAll(late, &dropped); });
    EXPECT_EQ(queue.queued(), 20);
    EXPECT_EQ(queue.TakeAll().size(), 20u) << "after allocation " << failures;
    EXPECT_EQ(queue.queued(), 0);
    EXPECT_TRUE(dropped.empty());
  }
  EXPECT_GT(failures, 1);
}

TEST_F(BatchingMemoryTest, ABatchThatCannotStartStaysDue) {
  int64_t failures = 0;
  for (bool failed = true; failed; ++failures) {
    Two two;
    two.Push();
    std::optional<Scheduler::Batch> batch;
    failed = Fails(failures, [&] { batch = two.Next(); });
    if (failed) batch = two.Next();
    EXPECT_TRUE(batch) << "after allocation " << failures;
    EXPECT_EQ(two.scheduler.queued(two.model), 0);
  }
  EXPECT_GT(failures, 1);
}

// Clients choose the buckets, and there may be 256 of them.
TEST_F(BatchingMemoryTest, ABucketIsSmallHoweverLargeItsBatchesMayBe) {
  constexpr size_t kMax = 4096;
  testing::FailAllocationsFrom(kMax);
  EXPECT_NO_THROW({
    Bucket bucket(0, /*max_batch_size=*/65536);
    bucket.latency.Learn(1, kMillisecond);
    bucket.latency.Learn(65536, kSecond);
  });
  testing::FailAllocationsFrom(SIZE_MAX);
}

class NoThreads final : public Waker {
 public:
  void WakeInstance(Scheduler::ModelId /*model*/, int /*instance*/) override {}
  void WakeTimer() override {}
};

// A DeviceGroup without threads, and a model with two instances, whose passes are known to take 10 ms.
class TwoOfAGroup {
 public:
  TwoOfAGroup() {
    for (int i = 0; i < 100; ++i) model->Learn(0, 1, kPass);
  }

  std::shared_ptr<Fate> Submit() {
    Watched watched = MakeTask({.arrival = clock.Now()});
    EXPECT_TRUE(model->Submit(watched.task).ok());
    return watched.fate;
  }

  // The batch that was handed to the instance.
  DeviceModel<BatchTask>::Tasks Taken(int instance) {
    return model->TryTake(instance).value_or(DeviceModel<BatchTask>::Tasks());
  }

  bool told = false;
  FakeClock clock;
  NoThreads waker;
  DeviceGroup group{{.cores = 2}, &clock, [this](const char* /*error*/) { told = true; }, &waker};
  std::unique_ptr<DeviceModel<BatchTask>> model =
      *DeviceModel<BatchTask>::Create({.max_batch_size = 1}, {0, 0}, &group);
};

// The pass that ends is the third that failed on instance 0 and succeeded on instance 1, so that instance 0
// is set aside, and instance 1 has another batch to compute.
TEST_F(BatchingMemoryTest, TheNextBatchFollowsAPassThatChangesAnInstance) {
  int64_t failures = 0;
  for (bool told = true; told; ++failures) {
    TwoOfAGroup two;
    for (int i = 0; i < 3; ++i) {
      if (i > 0) {
        two.model->Finished(1, /*learn=*/false);
        two.clock.Advance(2 * kPass);
      }
      two.Submit();
      auto batch = two.Taken(0);
      ASSERT_EQ(batch.size(), 1u) << i;
      two.model->Failed(0, &batch);
      ASSERT_TRUE(batch.empty()) << "it is tried again";
      ASSERT_EQ(two.Taken(1).size(), 1u) << i;
    }
    const auto fate = two.Submit();
    two.clock.Advance(kPass / 2);
    DeviceModel<BatchTask>::Changes changes;
    EXPECT_FALSE(Fails(failures, [&] { changes = two.model->Finished(1, /*learn=*/false); }))
        << "allocation " << failures;
    told = two.told;
    ASSERT_EQ(changes.size(), 1u);
    EXPECT_EQ(changes[0].instance, 0);
    EXPECT_TRUE(changes[0].set_aside);
    // What the timer does.
    two.group.HandOutDue();
    const auto next = two.Taken(1);
    ASSERT_EQ(next.size(), 1u) << "after allocation " << failures;
    EXPECT_EQ(FateOf(next[0]), fate);
    two.model->Finished(1, /*learn=*/false);
  }
  EXPECT_GT(failures, 1);
}

TEST_F(BatchingMemoryTest, EachRequestThatIsSweptIsAnswered) {
  int64_t failures = 0;
  for (bool failed = true; failed; ++failures) {
    TwoOfAGroup two;
    for (const int instance : {0, 1}) {
      two.Submit();
      ASSERT_EQ(two.Taken(instance).size(), 1u);
    }
    std::vector<std::shared_ptr<Fate>> fates;
    for (int i = 0; i < 5; ++i) fates.push_back(two.Submit());
    two.model->Close();
    for (const auto& fate : fates) fate->cancellation.Cancel();
    two.clock.Advance(kPass);
    failed = Fails(failures, [&] { two.group.Sweep(); });
    EXPECT_EQ(two.model->queued(), 5 - std::count_if(fates.begin(), fates.end(),
                                                     [](const auto& fate) { return fate->rejections == 1; }));
    two.clock.Advance(kPass);
    two.group.Sweep();
    for (const auto& fate : fates) EXPECT_EQ(fate->rejections, 1) << "after allocation " << failures;
    EXPECT_EQ(two.model->queued(), 0);
    for (const int instance : {0, 1}) {
      two.model->Finished(instance, /*learn=*/false);
      EXPECT_TRUE(two.model->TryTake(instance).has_value()) << "the thread may end";
    }
  }
  EXPECT_GT(failures, 1);
}

}  // namespace
}  // namespace saccade::server
