#include "server/batching/batcher.h"

#include <atomic>
#include <memory>
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
  void MakeBatcher(const BatcherOptions& options) {
    auto batcher = Batcher::Create(options, &clock_);
    ASSERT_TRUE(batcher.ok()) << batcher.status();
    batcher_ = *std::move(batcher);
  }

  // Submits a task that has to be taken; its fate is the answer.
  std::shared_ptr<Fate> Submit(BatchTask::Traits traits = {}) {
    traits.arrival = clock_.Now();
    auto [task, fate] = MakeTask(std::move(traits));
    const absl::Status taken = batcher_->Submit(task);
    EXPECT_TRUE(taken.ok()) << taken;
    return fate;
  }

  FakeClock clock_;
  std::unique_ptr<Batcher> batcher_;
};

// Take() on a thread of its own; Join hands out what it returned.
class Taker {
 public:
  explicit Taker(Batcher* batcher) : thread_([this, batcher] { batch_ = batcher->Take(); }) {}
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
  EXPECT_EQ(Batcher::Create({.max_batch_size = 0}, &clock_).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(BatcherTest, IdleInstanceTakesWorkAtOnce) {
  MakeBatcher({});
  Taker taker(batcher_.get());
  clock_.AwaitWaiters(1);
  const auto fate = Submit();
  // The clock never moved.
  const Batch batch = taker.Join();
  ASSERT_EQ(batch.size(), 1u);
  EXPECT_EQ(FateOf(batch[0]), fate);
}

TEST_F(BatcherTest, BatchFormsBehindABusyInstance) {
  MakeBatcher({.max_batch_size = 3});
  for (int i = 0; i < 5; ++i) Submit();
  EXPECT_EQ(batcher_->queued(), 5);
  EXPECT_EQ(batcher_->Take().size(), 3u);
  EXPECT_EQ(batcher_->Take().size(), 2u);
  EXPECT_EQ(batcher_->queued(), 0);
}

TEST_F(BatcherTest, IdleInstancesTakeOneBucketEach) {
  MakeBatcher({});
  for (int i = 0; i < 4; ++i) Submit({.bucket = i % 2});
  for (int64_t bucket : {0, 1}) {
    const Batch batch = batcher_->Take();
    ASSERT_EQ(batch.size(), 2u);
    EXPECT_EQ(batch[0]->bucket(), bucket);
    EXPECT_EQ(batch[1]->bucket(), bucket);
  }
  EXPECT_EQ(batcher_->queued(), 0);
}

TEST_F(BatcherTest, PushToAnotherBucketEndsTheWaitIfItIsDueSooner) {
  MakeBatcher({.max_queue_delay = absl::Seconds(1)});
  Taker taker(batcher_.get());
  clock_.AwaitWaiters(1);
  Submit({.bucket = 1});
  const auto urgent = Submit({.bucket = 2, .deadline = clock_.Now() + absl::Milliseconds(500)});
  const Batch batch = taker.Join();
  ASSERT_EQ(batch.size(), 1u);
  EXPECT_EQ(FateOf(batch[0]), urgent);
}

TEST_F(BatcherTest, IdleInstanceWaitsForCompanyUntilTheDelay) {
  MakeBatcher({.max_queue_delay = absl::Milliseconds(10)});
  Taker taker(batcher_.get());
  clock_.AwaitWaiters(1);
  Submit();
  clock_.Advance(absl::Milliseconds(6));
  Submit();
  clock_.Advance(absl::Milliseconds(4));
  EXPECT_EQ(taker.Join().size(), 2u);
}

TEST_F(BatcherTest, FullBatchEndsTheWait) {
  MakeBatcher({.max_batch_size = 2, .max_queue_delay = absl::Hours(1)});
  Taker taker(batcher_.get());
  clock_.AwaitWaiters(1);
  Submit();
  Submit();
  EXPECT_EQ(taker.Join().size(), 2u);
}

TEST_F(BatcherTest, TightDeadlineEndsTheWait) {
  MakeBatcher({.max_queue_delay = absl::Seconds(1)});
  Taker taker(batcher_.get());
  clock_.AwaitWaiters(1);
  Submit();
  Submit({.deadline = clock_.Now() + absl::Milliseconds(500)});
  EXPECT_EQ(taker.Join().size(), 2u);
}

TEST_F(BatcherTest, CloseEndsEveryWait) {
  MakeBatcher({.max_queue_delay = absl::Seconds(1)});
  Taker a(batcher_.get());
  Taker b(batcher_.get());
  Taker c(batcher_.get());
  clock_.AwaitWaiters(3);
  batcher_->Close();
  EXPECT_TRUE(a.Join().empty());
  EXPECT_TRUE(b.Join().empty());
  EXPECT_TRUE(c.Join().empty());
}

TEST_F(BatcherTest, CloseHandsOutWhatIsQueuedWithoutDelay) {
  MakeBatcher({.max_queue_delay = absl::Seconds(1)});
  Submit();
  batcher_->Close();
  batcher_->Close();
  auto [task, fate] = MakeTask({.arrival = clock_.Now()});
  EXPECT_EQ(batcher_->Submit(task).code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(task, nullptr);
  EXPECT_EQ(fate->rejections, 0);
  EXPECT_EQ(batcher_->Take().size(), 1u);
  EXPECT_TRUE(batcher_->Take().empty());
  EXPECT_TRUE(batcher_->Take().empty());
}

TEST_F(BatcherTest, CloseWithOnlyDeadWorkDrains) {
  MakeBatcher({});
  const auto fate = Submit();
  fate->cancellation.Cancel();
  batcher_->Close();
  EXPECT_TRUE(batcher_->Take().empty());
  EXPECT_EQ(fate->why.code(), absl::StatusCode::kCancelled);
}

TEST_F(BatcherTest, DestructionRejectsWhatIsLeft) {
  MakeBatcher({});
  const auto fate = Submit();
  batcher_.reset();
  EXPECT_EQ(fate->rejections, 1);
  EXPECT_EQ(fate->why.code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(fate->destroyed);
}

TEST_F(BatcherTest, DeadWorkIsRejectedByTakeAndTheWaitGoesOn) {
  MakeBatcher({});
  const auto late = Submit({.deadline = clock_.Now() + absl::Milliseconds(5)});
  clock_.Advance(absl::Milliseconds(5));
  Taker taker(batcher_.get());
  clock_.AwaitWaiters(1);
  const auto fine = Submit();
  const Batch batch = taker.Join();
  ASSERT_EQ(batch.size(), 1u);
  EXPECT_EQ(FateOf(batch[0]), fine);
  EXPECT_EQ(late->why.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(late->destroyed);
}

// Calls back into the batcher from Reject, which would deadlock were the lock held.
class Meddler final : public BatchTask {
 public:
  Meddler(Batcher* batcher, Traits traits) : BatchTask(std::move(traits)), batcher_(batcher) {}
  void Reject(absl::Status) override {
    auto [task, fate] = MakeTask({.size = 1, .arrival = arrival()});
    EXPECT_TRUE(batcher_->Submit(task).ok());
  }

 private:
  Batcher* const batcher_;
};

TEST_F(BatcherTest, RejectMayCallTheBatcher) {
  MakeBatcher({.max_batch_size = 2});
  for (int i = 0; i < 2; ++i) {
    std::unique_ptr<BatchTask> task = std::make_unique<Meddler>(
        batcher_.get(),
        BatchTask::Traits{.arrival = clock_.Now(), .deadline = clock_.Now() + absl::Seconds(1)});
    ASSERT_TRUE(batcher_->Submit(task).ok());
  }
  clock_.Advance(absl::Seconds(1));
  EXPECT_EQ(batcher_->Take().size(), 2u) << "what the rejected ones submitted";
}

TEST_F(BatcherTest, FullQueueRejectsTheDeadOnSubmit) {
  MakeBatcher({.max_batch_size = 1, .max_queue_size = 1});
  const auto first = Submit();
  auto [task, fate] = MakeTask({.arrival = clock_.Now()});
  EXPECT_EQ(batcher_->Submit(task).code(), absl::StatusCode::kResourceExhausted);
  first->cancellation.Cancel();
  EXPECT_TRUE(batcher_->Submit(task).ok());
  EXPECT_EQ(first->rejections, 1);
  EXPECT_EQ(first->why.code(), absl::StatusCode::kCancelled);
}

TEST_F(BatcherTest, CancelStormRunsNoneOfTheCancelled) {
  MakeBatcher({.max_batch_size = 8, .max_queue_size = 1000});
  std::vector<std::shared_ptr<Fate>> fates;
  for (int i = 0; i < 1000; ++i) fates.push_back(Submit());
  for (int i = 0; i < 1000; ++i) {
    if (i % 10 != 0) fates[i]->cancellation.Cancel();
  }
  batcher_->Close();
  int taken = 0;
  for (Batch batch = batcher_->Take(); !batch.empty(); batch = batcher_->Take()) {
    for (const auto& task : batch) EXPECT_FALSE(FateOf(task)->cancellation.cancelled());
    taken += static_cast<int>(batch.size());
  }
  EXPECT_EQ(taken, 100);
  int rejected = 0;
  for (const auto& fate : fates) rejected += fate->rejections;
  EXPECT_EQ(rejected, 900);
}

TEST_F(BatcherTest, EachSubmitWakesAnIdleInstance) {
  MakeBatcher({.max_batch_size = 1});
  std::vector<std::unique_ptr<Taker>> takers;
  for (int i = 0; i < 4; ++i) takers.push_back(std::make_unique<Taker>(batcher_.get()));
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

// Submitters, cancellers, a moving clock and instances at once; afterwards every task has had exactly one
// fate.
TEST_F(BatcherTest, EveryTaskHasOneFateUnderManyThreads) {
  MakeBatcher({.max_batch_size = 4, .max_queue_size = 32, .max_queue_delay = absl::Milliseconds(2)});
  constexpr int kSubmitters = 3;
  constexpr int kEach = 2000;
  std::vector<std::shared_ptr<Fate>> fates[kSubmitters];
  std::atomic<int> refused{0};
  std::atomic<int> taken{0};
  std::vector<std::thread> instances;
  for (int i = 0; i < 3; ++i) {
    instances.emplace_back([&] {
      for (Batch batch = batcher_->Take(); !batch.empty(); batch = batcher_->Take()) {
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
