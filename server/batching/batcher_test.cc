#include "server/batching/batcher.h"

#include <atomic>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "server/batching/recording_task.h"
#include "server/core/fake_clock.h"

namespace saccade::server {
namespace {

using Batch = std::vector<std::unique_ptr<BatchTask>>;

class BatcherTest : public ::testing::Test {
 protected:
  // No thread is in Take() yet, but the instances are idle: the first tasks are assigned to them, later ones
  // are queued.
  void MakeBatcher(const BatcherOptions& options, int instances = 1) {
    auto batcher = Batcher::Create(options, Places(instances), &device_);
    ASSERT_TRUE(batcher.ok()) << batcher.status();
    batcher_ = *std::move(batcher);
  }

  // Submits a task that must be accepted; returns its Fate.
  std::shared_ptr<Fate> Submit(BatchTask::Traits traits = {}) {
    traits.arrival = clock_.Now();
    auto [task, fate] = MakeTask(std::move(traits));
    const absl::Status taken = batcher_->Submit(task);
    EXPECT_TRUE(taken.ok()) << taken;
    return fate;
  }

  // Finishes the instance's last batch and returns its next one.
  Batch Next(int instance = 0) {
    batcher_->Finished(instance, /*learn=*/false);
    return batcher_->Take(instance);
  }

  FakeClock clock_;
  Device device_{{.cores = 4}, &clock_};
  std::unique_ptr<Batcher> batcher_;
};

// Calls Take() on a thread of its own; Join() returns the result.
class Taker {
 public:
  explicit Taker(Batcher* batcher, int instance = 0)
      : thread_([this, batcher, instance] { batch_ = batcher->Take(instance); }) {}
  ~Taker() {
    if (thread_.joinable()) thread_.join();
  }
  Batch Join() {
    thread_.join();
    return std::move(batch_);
  }

 private:
  Batch batch_;
  std::thread thread_;
};

TEST_F(BatcherTest, BadOptionsAreAnError) {
  EXPECT_EQ(Batcher::Create({.max_batch_size = 0}, {0}, &device_).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(BatcherTest, IdleInstanceTakesWorkAtOnce) {
  MakeBatcher({});
  Taker taker(batcher_.get());
  clock_.AwaitWaiters(1);
  const auto fate = Submit();
  // The clock was never advanced.
  const Batch batch = taker.Join();
  ASSERT_EQ(batch.size(), 1u);
  EXPECT_EQ(FateOf(batch[0]), fate);
}

TEST_F(BatcherTest, BatchFormsBehindABusyInstance) {
  MakeBatcher({.max_batch_size = 3});
  for (int i = 0; i < 6; ++i) Submit();
  EXPECT_EQ(batcher_->Take(0).size(), 1u);
  EXPECT_EQ(batcher_->queued(), 5);
  EXPECT_EQ(Next().size(), 3u);
  EXPECT_EQ(Next().size(), 2u);
  EXPECT_EQ(batcher_->queued(), 0);
}

// If a pass over four items takes little longer than over one, and requests arrive fast, an idle instance
// waits.
TEST_F(BatcherTest, WaitsForCompanyThatPaysUntilTheDelay) {
  MakeBatcher({.max_batch_size = 8, .max_queue_delay = absl::Milliseconds(10)});
  batcher_->Learn(0, 1, absl::Milliseconds(20));
  batcher_->Learn(0, 8, absl::Milliseconds(27));
  for (int i = 0; i < 600; ++i) {
    Submit();
    clock_.Advance(absl::Milliseconds(5));
    if (i % 4 == 0) Next();
  }
  while (batcher_->queued() > 0) Next();
  batcher_->Finished(0, false);
  Taker taker(batcher_.get());
  clock_.AwaitWaiters(1);
  Submit();
  clock_.Advance(absl::Milliseconds(6));
  Submit();
  clock_.Advance(absl::Milliseconds(4));
  EXPECT_EQ(taker.Join().size(), 2u);
}

TEST_F(BatcherTest, CloseEndsEveryWait) {
  MakeBatcher({}, 3);
  Taker a(batcher_.get(), 0);
  Taker b(batcher_.get(), 1);
  Taker c(batcher_.get(), 2);
  clock_.AwaitWaiters(3);
  batcher_->Close();
  EXPECT_TRUE(a.Join().empty());
  EXPECT_TRUE(b.Join().empty());
  EXPECT_TRUE(c.Join().empty());
}

TEST_F(BatcherTest, CloseHandsOutWhatIsQueued) {
  MakeBatcher({.max_batch_size = 2});
  for (int i = 0; i < 4; ++i) Submit();
  batcher_->Close();
  batcher_->Close();
  EXPECT_EQ(batcher_->Take(0).size(), 1u);
  EXPECT_EQ(Next().size(), 2u);
  EXPECT_EQ(Next().size(), 1u);
  EXPECT_TRUE(Next().empty());
  auto [task, fate] = MakeTask({});
  EXPECT_EQ(batcher_->Submit(task).code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(task, nullptr);
  EXPECT_EQ(fate->rejections, 0);
}

TEST_F(BatcherTest, DestructorRejectsWhatIsLeft) {
  MakeBatcher({.max_batch_size = 1});
  const auto handed_out = Submit();
  const auto queued = Submit();
  batcher_.reset();
  for (const auto& fate : {handed_out, queued}) {
    EXPECT_EQ(fate->rejections, 1);
    EXPECT_EQ(fate->why.code(), absl::StatusCode::kUnavailable);
  }
}

// Submits another task when it is rejected, like a client that retries.
class Meddler final : public BatchTask {
 public:
  Meddler(Batcher* batcher, Traits traits) : BatchTask(std::move(traits)), batcher_(batcher) {}
  void Reject(absl::Status) override {
    Traits again = traits();
    again.deadline = absl::InfiniteFuture();
    std::unique_ptr<BatchTask> task = MakeTask(again).task;
    EXPECT_TRUE(batcher_->Submit(task).ok());
  }

 private:
  Batcher* const batcher_;
};

TEST_F(BatcherTest, RejectMayCallTheBatcher) {
  MakeBatcher({.max_batch_size = 2});
  Submit();
  for (int i = 0; i < 2; ++i) {
    std::unique_ptr<BatchTask> task = std::make_unique<Meddler>(
        batcher_.get(),
        BatchTask::Traits{.arrival = clock_.Now(), .deadline = clock_.Now() + absl::Seconds(1)});
    ASSERT_TRUE(batcher_->Submit(task).ok());
  }
  EXPECT_EQ(batcher_->Take(0).size(), 1u);
  clock_.Advance(absl::Seconds(1));
  EXPECT_EQ(Next().size() + batcher_->queued(), 2u) << "what the rejected ones submitted";
}

TEST_F(BatcherTest, CancelStormRunsNoneOfTheCancelled) {
  MakeBatcher({.max_batch_size = 8, .max_queue_size = 1000});
  Submit();
  std::vector<std::shared_ptr<Fate>> fates;
  for (int i = 0; i < 1000; ++i) fates.push_back(Submit());
  for (int i = 0; i < 1000; ++i) {
    if (i % 10 != 0) fates[i]->cancellation.Cancel();
  }
  batcher_->Close();
  EXPECT_EQ(batcher_->Take(0).size(), 1u);
  int taken = 0;
  for (Batch batch = Next(); !batch.empty(); batch = Next()) {
    for (const auto& task : batch) EXPECT_FALSE(FateOf(task)->cancellation.cancelled());
    taken += static_cast<int>(batch.size());
  }
  EXPECT_EQ(taken, 100);
  int rejected = 0;
  for (const auto& fate : fates) rejected += fate->rejections;
  EXPECT_EQ(rejected, 900);
}

TEST_F(BatcherTest, EachSubmitWakesAnIdleInstance) {
  MakeBatcher({.max_batch_size = 1}, 4);
  std::vector<std::unique_ptr<Taker>> takers;
  for (int i = 0; i < 4; ++i) takers.push_back(std::make_unique<Taker>(batcher_.get(), i));
  clock_.AwaitWaiters(4);
  std::set<std::shared_ptr<Fate>> submitted;
  for (int i = 0; i < 4; ++i) submitted.insert(Submit());
  std::set<std::shared_ptr<Fate>> taken;
  for (auto& taker : takers) {
    const Batch batch = taker->Join();
    ASSERT_EQ(batch.size(), 1u);
    taken.insert(FateOf(batch[0]));
  }
  EXPECT_EQ(taken, submitted);
}

TEST_F(BatcherTest, ATinyBatchIsForWhoBringsIt) {
  MakeBatcher({.max_batch_size = 1});
  batcher_->Learn(0, 1, absl::Microseconds(5));
  std::optional<TinyBatch> tiny;
  std::unique_ptr<BatchTask> first = MakeTask({.arrival = clock_.Now()}).task;
  std::unique_ptr<BatchTask> second = MakeTask({.arrival = clock_.Now()}).task;
  ASSERT_TRUE(batcher_->Submit(first, &tiny).ok());
  ASSERT_TRUE(tiny.has_value());
  EXPECT_EQ(tiny->tasks.size(), 1u);
  std::optional<TinyBatch> none;
  ASSERT_TRUE(batcher_->Submit(second, &none).ok());
  EXPECT_FALSE(none.has_value()) << "its instance computes the first";
  EXPECT_EQ(Next(tiny->instance).size(), 1u) << "which its own thread takes";
}

TEST_F(BatcherTest, WhoComputedATinyBatchGoesOnWithTheNext) {
  MakeBatcher({.max_batch_size = 4});
  for (int size = 1; size <= 4; ++size) batcher_->Learn(0, size, absl::Microseconds(50 * size));
  std::optional<TinyBatch> tiny;
  std::vector<std::unique_ptr<BatchTask>> tasks;
  for (int i = 0; i < 7; ++i) tasks.push_back(MakeTask({.arrival = clock_.Now()}).task);
  ASSERT_TRUE(batcher_->Submit(tasks[0], &tiny).ok());
  ASSERT_TRUE(tiny.has_value());
  std::optional<TinyBatch> none;
  for (size_t i = 1; i < tasks.size(); ++i) ASSERT_TRUE(batcher_->Submit(tasks[i], &none).ok());
  EXPECT_FALSE(none.has_value()) << "its instance computes the first";
  std::optional<TinyBatch> next;
  batcher_->Finished(tiny->instance, false, &next);
  ASSERT_TRUE(next.has_value()) << "four take longer than one alone may, but less than four hand-offs";
  EXPECT_EQ(next->tasks.size(), 4u);
  batcher_->Finished(next->instance, false);
  EXPECT_EQ(batcher_->Take(0).size(), 2u) << "what its thread takes, as nobody else does";
}

TEST_F(BatcherTest, ALongerBatchIsForTheInstancesThread) {
  MakeBatcher({.max_batch_size = 1});
  batcher_->Learn(0, 1, absl::Milliseconds(5));
  std::optional<TinyBatch> tiny;
  std::unique_ptr<BatchTask> task = MakeTask({.arrival = clock_.Now()}).task;
  ASSERT_TRUE(batcher_->Submit(task, &tiny).ok());
  EXPECT_FALSE(tiny.has_value());
  EXPECT_EQ(batcher_->Take(0).size(), 1u);
}

TEST_F(BatcherTest, AnotherModelsThreadIsWokenForItsOwnWork) {
  Device narrow({.cores = 1}, &clock_);
  auto a = *Batcher::Create({.max_batch_size = 1}, {0}, &narrow);
  auto b = *Batcher::Create({.max_batch_size = 1}, {0}, &narrow);
  std::unique_ptr<BatchTask> first = MakeTask({}).task;
  std::unique_ptr<BatchTask> second = MakeTask({}).task;
  ASSERT_TRUE(a->Submit(first).ok());
  ASSERT_TRUE(b->Submit(second).ok());
  Taker taker(b.get());
  EXPECT_EQ(a->Take(0).size(), 1u);
  EXPECT_EQ(b->queued(), 1) << "the only core is taken";
  a->Finished(0, false);
  EXPECT_EQ(taker.Join().size(), 1u);
}

TEST_F(BatcherTest, ABatchOfWhichNothingIsKnownIsForTheInstancesThread) {
  MakeBatcher({.max_batch_size = 1});
  std::optional<TinyBatch> tiny;
  std::unique_ptr<BatchTask> task = MakeTask({.arrival = clock_.Now()}).task;
  ASSERT_TRUE(batcher_->Submit(task, &tiny).ok());
  EXPECT_FALSE(tiny.has_value());
  EXPECT_EQ(batcher_->Take(0).size(), 1u);
}

// A hanging pass releases its cores after a second. Submitting the tiny batch is the first call that notices
// it.
TEST_F(BatcherTest, WhoBringsATinyBatchHandsOthersToTheirThreads) {
  auto hanging = *Batcher::Create({.max_batch_size = 1, .threads = 4}, {0}, &device_);
  auto waiting = *Batcher::Create({.max_batch_size = 1, .threads = 2}, {0}, &device_);
  MakeBatcher({.max_batch_size = 1});
  batcher_->Learn(0, 1, absl::Microseconds(5));
  for (Batcher* batcher : {hanging.get(), waiting.get()}) {
    std::unique_ptr<BatchTask> task = MakeTask({.arrival = clock_.Now()}).task;
    ASSERT_TRUE(batcher->Submit(task).ok());
  }
  EXPECT_EQ(hanging->Take(0).size(), 1u);
  EXPECT_EQ(waiting->queued(), 1);
  clock_.Advance(absl::Seconds(1));
  std::optional<TinyBatch> tiny;
  std::unique_ptr<BatchTask> task = MakeTask({.arrival = clock_.Now()}).task;
  ASSERT_TRUE(batcher_->Submit(task, &tiny).ok());
  EXPECT_TRUE(tiny.has_value());
  EXPECT_EQ(waiting->Take(0).size(), 1u);
}

TEST_F(BatcherTest, AModelThatGoesLeavesOthersTheirBatches) {
  MakeBatcher({.max_batch_size = 1});
  auto other = *Batcher::Create({.max_batch_size = 1}, {0}, &device_);
  const auto mine = Submit();
  auto [task, fate] = MakeTask({.arrival = clock_.Now()});
  ASSERT_TRUE(other->Submit(task).ok());
  batcher_.reset();
  EXPECT_EQ(mine->rejections, 1);
  EXPECT_EQ(fate->rejections, 0);
  EXPECT_EQ(other->Take(0).size(), 1u);
}

TEST_F(BatcherTest, AClosedModelWaitsForTheCoresThatItsLastRequestsNeed) {
  Device narrow({.cores = 1}, &clock_);
  auto a = *Batcher::Create({.max_batch_size = 1}, {0}, &narrow);
  auto b = *Batcher::Create({.max_batch_size = 1}, {0}, &narrow);
  std::unique_ptr<BatchTask> first = MakeTask({.arrival = clock_.Now()}).task;
  std::unique_ptr<BatchTask> second = MakeTask({.arrival = clock_.Now()}).task;
  ASSERT_TRUE(a->Submit(first).ok());
  EXPECT_EQ(a->Take(0).size(), 1u);
  {
    Taker taker(b.get());
    clock_.AwaitWaiters(1);
    ASSERT_TRUE(b->Submit(second).ok());
    b->Close();
    clock_.Advance(absl::Milliseconds(500));
    EXPECT_EQ(b->queued(), 1);
    a->Finished(0, false);
    EXPECT_EQ(taker.Join().size(), 1u);
  }
  b->Finished(0, false);
  EXPECT_TRUE(b->Take(0).empty());
}

TEST_F(BatcherTest, MemoryThatWasShortKeepsBatchesSmall) {
  MakeBatcher({.max_batch_size = 8});
  for (int i = 0; i < 9; ++i) Submit();
  EXPECT_EQ(batcher_->Take(0).size(), 1u);
  batcher_->NoRoomFor(0, 8);
  EXPECT_EQ(Next().size(), 4u);
}

TEST_F(BatcherTest, ASweepAnswersThoseWhoWaitBehindAPassThatHangs) {
  MakeBatcher({.max_batch_size = 1});
  Submit();
  EXPECT_EQ(batcher_->Take(0).size(), 1u);
  const auto late = Submit({.deadline = clock_.Now() + absl::Seconds(1)});
  const auto patient = Submit();
  clock_.Advance(absl::Seconds(1));
  device_.Sweep();
  EXPECT_EQ(late->rejections, 1);
  EXPECT_TRUE(absl::IsDeadlineExceeded(late->why));
  EXPECT_EQ(patient->rejections, 0);
}

// Runs submitters, cancellers, a moving clock and instances concurrently; at the end every task has had
// exactly one outcome.
TEST_F(BatcherTest, EveryTaskHasOneFateUnderManyThreads) {
  MakeBatcher({.max_batch_size = 4, .max_queue_size = 32, .max_queue_delay = absl::Milliseconds(2)}, 3);
  constexpr int kSubmitters = 3;
  constexpr int kEach = 2000;
  std::vector<std::shared_ptr<Fate>> fates[kSubmitters];
  std::atomic<int> refused{0};
  std::atomic<int> taken{0};
  std::vector<std::thread> instances;
  for (int i = 0; i < 3; ++i) {
    instances.emplace_back([&, i] {
      for (Batch batch = batcher_->Take(i); !batch.empty(); batch = Next(i)) {
        for (const auto& task : batch) {
          EXPECT_EQ(FateOf(task)->rejections, 0);
          EXPECT_EQ(task->bucket(), batch[0]->bucket());
        }
        taken += static_cast<int>(batch.size());
      }
    });
  }
  std::vector<std::thread> submitters;
  for (int s = 0; s < kSubmitters; ++s) {
    submitters.emplace_back([&, s] {
      std::mt19937 random(static_cast<unsigned>(s));
      for (int i = 0; i < kEach; ++i) {
        const absl::Time now = clock_.Now();
        auto [task, fate] = MakeTask({.size = 1 + static_cast<int64_t>(random() % 3),
                                      .bucket = static_cast<int64_t>(random() % 3),
                                      .priority = static_cast<int>(random() % 2),
                                      .arrival = now,
                                      .deadline = now + absl::Milliseconds(random() % 10)});
        if (batcher_->Submit(task).ok()) {
          fates[s].push_back(fate);
        } else {
          ++refused;
        }
        if (random() % 4 == 0) fate->cancellation.Cancel();
        if (random() % 4 == 0) clock_.Advance(absl::Milliseconds(1));
      }
    });
  }
  for (auto& thread : submitters) thread.join();
  batcher_->Close();
  for (auto& thread : instances) thread.join();
  int rejected = 0;
  for (const auto& mine : fates) {
    for (const auto& fate : mine) {
      EXPECT_LE(fate->rejections, 1);
      EXPECT_TRUE(fate->destroyed);
      rejected += fate->rejections;
    }
  }
  EXPECT_EQ(taken + rejected + refused, kSubmitters * kEach);
  EXPECT_GT(taken, 0);
}

}  // namespace
}  // namespace saccade::server
