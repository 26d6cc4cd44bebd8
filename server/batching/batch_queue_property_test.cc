#include <algorithm>
#include <memory>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "server/batching/batch_queue.h"
#include "server/batching/recording_task.h"

namespace saccade::server {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1000);

// Random operations against what must hold whatever the order: every task has exactly one fate, no batch is
// empty or too large, nothing dead comes out, nothing that could still run is dropped, the order is kept
// within a batch, no batch mixes buckets, the first in order of what is due is never left behind, and the
// queue is due exactly when the rules say.
class RandomOperations {
 public:
  RandomOperations(unsigned seed, const BatcherOptions& options, int buckets)
      : options_(options), buckets_(buckets), random_(seed), queue_(options) {}

  void Run(int operations) {
    for (int i = 0; i < operations && !::testing::Test::HasFailure(); ++i) {
      switch (Below(8)) {
        case 0:
        case 1:
        case 2:
        case 3:
          Push();
          break;
        case 4:
          now_ += absl::Milliseconds(Below(4));
          break;
        case 5:
          Cancel();
          break;
        default:
          Poll();
          break;
      }
    }
    queue_.Close();
    while (queue_.queued() > 0) Poll();
    EXPECT_TRUE(waiting_.empty()) << waiting_.size() << " tasks met no fate";
    EXPECT_GT(taken_, operations / 20) << "the test has to reach the interesting part";
    EXPECT_GT(dropped_, operations / 100);
    EXPECT_GT(refused_, operations / 1000);
  }

 private:
  int Below(int bound) { return std::uniform_int_distribution<int>(0, bound - 1)(random_); }

  bool Dead(const BatchTask& task) const {
    return task.cancelled() || task.deadline() <= now_ || now_ - task.arrival() >= options_.queue_timeout;
  }

  static auto Order(const BatchTask& task) {
    return std::make_tuple(-task.priority(), task.deadline(), task.arrival());
  }

  void Forget(const BatchTask* task) {
    const auto gone = std::erase_if(waiting_, [task](const auto& waiting) { return waiting.first == task; });
    EXPECT_EQ(gone, 1u) << "a task met two fates, or one it was never queued for";
  }

  int64_t Pictures() const {
    int64_t pictures = 0;
    for (const auto& [task, fate] : waiting_) pictures += task->size();
    return pictures;
  }

  void Push() {
    BatchTask::Traits traits{.size = 1 + Below(3) * Below(2),
                             .bucket = Below(buckets_),
                             .priority = Below(3),
                             .arrival = now_ - absl::Milliseconds(Below(3))};
    if (Below(2) == 0) traits.deadline = now_ + absl::Milliseconds(Below(20) - 1);
    auto [task, fate] = MakeTask(traits);
    if (Below(20) == 0) fate->cancellation.Cancel();
    const BatchTask* const pushed = task.get();
    const bool dead = Dead(*pushed);
    std::vector<BatchQueue::Dropped> dropped;
    const absl::Status taken = queue_.Push(task, now_, &dropped);
    Drop(dropped);
    if (taken.ok()) {
      EXPECT_FALSE(dead);
      waiting_.emplace_back(pushed, fate);
    } else if (taken.code() == absl::StatusCode::kResourceExhausted) {
      EXPECT_GT(Pictures() + pushed->size(), options_.max_queue_size) << "refused although there was room";
      ++refused_;
    } else {
      EXPECT_TRUE(dead) << taken;
    }
    EXPECT_EQ(queue_.queued(), Pictures());
    EXPECT_LE(queue_.queued(), options_.max_queue_size);
  }

  void Cancel() {
    if (waiting_.empty()) return;
    waiting_[Below(static_cast<int>(waiting_.size()))].second->cancellation.Cancel();
  }

  void Drop(const std::vector<BatchQueue::Dropped>& dropped) {
    for (const auto& [task, why] : dropped) {
      EXPECT_TRUE(Dead(*task)) << why;
      EXPECT_FALSE(why.ok());
      Forget(task.get());
      ++dropped_;
    }
  }

  // Whether the rules want a batch of this bucket now, over what waits alive.
  bool Due(int64_t bucket) const {
    absl::Time due = absl::InfiniteFuture();
    absl::Time deadline = absl::InfiniteFuture();
    int64_t pictures = 0;
    for (const auto& [task, fate] : waiting_) {
      if (task->bucket() != bucket) continue;
      due = std::min(due, task->arrival() + options_.max_queue_delay);
      deadline = std::min(deadline, task->deadline());
      pictures += task->size();
    }
    return pictures > 0 &&
           (queue_.closed() || pictures >= options_.max_batch_size || due <= now_ || deadline <= due);
  }

  bool AnyDue() const {
    for (int bucket = 0; bucket < buckets_; ++bucket) {
      if (Due(bucket)) return true;
    }
    return false;
  }

  void Poll() {
    BatchQueue::Polled polled = queue_.Poll(now_);
    Drop(polled.dropped);
    for (const auto& [task, fate] : waiting_)
      EXPECT_FALSE(Dead(*task)) << "a dead task was kept or handed out";
    EXPECT_EQ(!polled.batch.empty(), AnyDue());
    if (!polled.batch.empty()) CheckBatch(polled.batch);
    EXPECT_EQ(queue_.queued(), Pictures());
    EXPECT_EQ(queue_.ready_at() <= now_, AnyDue());
  }

  void CheckBatch(const std::vector<std::unique_ptr<BatchTask>>& batch) {
    const int64_t bucket = batch[0]->bucket();
    int64_t size = 0;
    for (size_t i = 0; i < batch.size(); ++i) {
      size += batch[i]->size();
      EXPECT_EQ(batch[i]->bucket(), bucket) << "buckets are mixed";
      EXPECT_LE(Order(*batch[i == 0 ? 0 : i - 1]), Order(*batch[i])) << "out of order";
    }
    EXPECT_LE(size, options_.max_batch_size);
    for (const auto& [task, fate] : waiting_) {
      if (Due(task->bucket())) {
        EXPECT_LE(Order(*batch[0]), Order(*task));
      }
    }
    for (const auto& task : batch) Forget(task.get());
    for (const auto& [task, fate] : waiting_) {
      if (task->bucket() == bucket && task->size() <= options_.max_batch_size - size)
        ADD_FAILURE() << "a task that fits was left behind";
    }
    taken_ += static_cast<int>(batch.size());
  }

  const BatcherOptions options_;
  const int buckets_;
  std::mt19937 random_;
  BatchQueue queue_;
  absl::Time now_ = kStart;
  std::vector<std::pair<const BatchTask*, std::shared_ptr<Fate>>> waiting_;
  int taken_ = 0;
  int dropped_ = 0;
  int refused_ = 0;
};

TEST(BatchQueuePropertyTest, RandomOperationsKeepEveryInvariant) {
  for (unsigned seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(seed);
    BatcherOptions options{.max_batch_size = 4, .max_queue_size = 10};
    if (seed % 2 == 0) options.max_queue_delay = absl::Milliseconds(5);
    if (seed % 4 > 1) options.queue_timeout = absl::Milliseconds(9);
    RandomOperations(seed, options, /*buckets=*/seed > 4 ? 3 : 1).Run(25'000);
  }
}

}  // namespace
}  // namespace saccade::server
