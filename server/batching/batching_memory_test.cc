// What a scheduler still does after an allocation has failed.
#include <cstdint>
#include <new>
#include <optional>
#include <vector>

#include "gtest/gtest.h"
#include "server/batching/model_queue.h"
#include "server/batching/scheduler.h"
#include "server/batching/testing/recording_task.h"
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

}  // namespace
}  // namespace saccade::server
