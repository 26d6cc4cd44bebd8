// All queued tasks of one model: its buckets, its bounds, and when a batch is due.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/batching/batch_task.h"
#include "server/batching/batcher_options.h"
#include "server/batching/bucket.h"
#include "server/batching/learned_timing.h"
#include "server/batching/nanos.h"
#include "server/batching/scheduler.h"

namespace saccade::server {

// Not thread-safe.
class ModelQueue {
 public:
  using Tasks = std::vector<std::unique_ptr<BatchTask>>;
  using Dropped = std::vector<Scheduler::Dropped>;

  // A batch that may start now.
  struct Due {
    Bucket* bucket = nullptr;
    int64_t priority_class = 0;
    // Latest start at which the first member meets its deadline.
    NanoTime latest_start = NanoTime::Never();
  };

  explicit ModelQueue(const BatcherOptions& options);

  const BatcherOptions& options() const { return options_; }
  bool empty() const { return waiting_.empty(); }
  int64_t queued() const { return queued_; }
  // Number of priority levels whose load is known.
  size_t levels() const { return levels_.size(); }
  // Number of batch targets computed so far: one for each level and bucket, every time.
  int64_t targets_computed() const { return targets_computed_; }

  // Records the end of a pass; `took` is nullopt if it was not an ordinary pass.
  void Learn(int64_t bucket, int64_t size, std::optional<Nanos> took, NanoTime now);

  // Count the items of a pass that begins, and of one that has ended.
  void CountStarted(int64_t bucket, int64_t size, NanoTime now) { Find(bucket, now).computing += size; }
  void CountComputed(int64_t bucket, int64_t size, NanoTime now);

  // Returns the expected time of a pass over `size` items of a bucket; nullopt if nothing is known of it.
  std::optional<Nanos> Expected(int64_t bucket, int64_t size) const;

  // See Scheduler::Learned.
  std::vector<LearnedTiming> Learned() const;

  // See Scheduler::ReduceBatches.
  void ReduceBatches(int64_t bucket, int64_t size, NanoTime now);

  // See Scheduler::Push. `ahead` is the time that the instances still need for running passes. `instances` is
  // the number of passes of this model that run concurrently, possibly a fraction.
  absl::Status Push(std::unique_ptr<BatchTask>& task, NanoTime now, Nanos ahead, double instances,
                    Dropped* dropped);

  // See Scheduler::Consider; `ahead` and `instances` as for Push.
  absl::Status Consider(const BatchTask::Traits& traits, absl::Span<const int64_t> buckets, NanoTime now,
                        Nanos ahead, double instances, Dropped* dropped);

  // Stores the due batch that goes first in `*due` and returns true; returns false if none is due. Lowers
  // `*wake_at` to the time at which another batch may be due. With `at_once` no batch waits for more items.
  // Drops tasks that can no longer be in time.
  bool FindDue(NanoTime now, double instances, bool at_once, Due* due, NanoTime* wake_at, Dropped* dropped);

  // Removes and returns the next batch of a bucket that FindDue found. Empty only if its tasks were cancelled
  // in between.
  Tasks Take(Bucket& bucket, NanoTime now, Dropped* dropped);

  Tasks TakeAll();

  // Returns the time of one instance that the items need which have arrived since the last call, rejected
  // ones included, in batches as large as the load allows. Items whose latency is unknown need nothing.
  Nanos TakeDemand() { return std::exchange(demand_, Nanos()); }

  // Drops tasks that are cancelled or can no longer be in time, unless that was done within the last
  // millisecond.
  void SweepAll(NanoTime now, Dropped* dropped);

 private:
  // A priority class: its queued items, their cost as time of one instance, and its arrival rate. Tasks whose
  // queue timeout has passed are in the class of delayed tasks, but stay among their own class's `own_tasks`
  // and `own_items`.
  struct Level {
    int64_t priority_class = 0;
    int64_t queued = 0;
    Nanos backlog = {};
    int64_t own_tasks = 0;
    int64_t own_items = 0;
    ArrivalRate arrivals = {};
  };

  // Time constant of a level's arrival rate.
  static constexpr Nanos kLevelMemory = 500 * kMillisecond;

  Bucket& Find(int64_t id, NanoTime now);
  Level& LevelOf(int64_t priority_class);
  void ForgetLevel(int64_t kept, NanoTime now);
  const BatchTarget& TargetOf(const Bucket& bucket, int64_t priority_class) const;
  void Doubt(Bucket& bucket, int64_t size, Nanos left, NanoTime now);
  // Returns where a task with these traits would be queued, and its entry without the task.
  std::pair<Bucket::Position, Bucket::Entry> PositionOf(const BatchTask::Traits& traits);
  void Count(Bucket& bucket, const Bucket::Position& position, int64_t size, NanoTime now);
  absl::Status CheckRoom(int64_t priority_class, int64_t size, bool take, NanoTime now, Dropped* dropped);
  absl::Duration WhenEmpty(Nanos ahead, double instances) const;
  std::pair<Bucket*, Bucket::Queue::iterator> LastBehind(int64_t priority_class) const;
  void EvictLastBehind(int64_t priority_class, Dropped* dropped);
  Nanos WorkAhead(const Bucket::Position& position) const;
  static absl::Status TooLate(Nanos takes, Nanos left);
  absl::Status CheckInTime(int64_t size, const Bucket& bucket, const Bucket::Position& position, NanoTime now,
                           Nanos ahead, double instances) const;
  absl::Status CheckKnownInTime(absl::Span<const int64_t> buckets, const Bucket::Position& position,
                                NanoTime now, Nanos ahead, double instances) const;

  void Add(Bucket& bucket, const Bucket::Position& position, Bucket::Entry entry);
  // `it` is advanced to the next entry.
  std::unique_ptr<BatchTask> Remove(Bucket& bucket, Bucket::Queue::iterator& it);
  // Moves the entry's task to `dropped` and advances `it`. If that throws, the task stays queued.
  void Drop(Bucket& bucket, Bucket::Queue::iterator& it, absl::Status why, Dropped* dropped);
  // Returns whether the entry may still be computed. If not, drops or delays it and advances `it`.
  bool KeepWaiting(Bucket& bucket, Bucket::Queue::iterator& it, NanoTime now, Dropped* dropped);
  void Sweep(Bucket& bucket, NanoTime now, Dropped* dropped);
  void Shed(Bucket& bucket, NanoTime now, Dropped* dropped);
  void Forget();
  static int64_t InTime(const Bucket& bucket, int64_t max, NanoTime now);
  int64_t MaxTogether(const Bucket& bucket, NanoTime now) const;
  int64_t BatchSize(const Bucket& bucket, NanoTime now) const;
  static bool MayGrow(const Bucket& bucket, NanoTime now);
  NanoTime DueAt(const Bucket& bucket, int64_t size, double instances, Nanos others, NanoTime now) const;
  void UpdateTargets(NanoTime now, double instances);

  const BatcherOptions options_;
  // std::map, because Abseil's tables are broken after an allocation that fails while they grow.
  std::map<int64_t, std::unique_ptr<Bucket>> buckets_;
  // All buckets, in order of creation.
  std::vector<Bucket*> known_;
  std::vector<Bucket*> waiting_;  // buckets with a non-empty queue
  // Ordered by priority class; the first goes first.
  std::vector<Level> levels_;
  int64_t queued_ = 0;
  // See TakeDemand.
  Nanos demand_;
  // Sum of Entry::cost over all queued tasks, as time of one instance.
  Nanos backlog_;
  int64_t pushed_ = 0;
  int64_t active_ = 0;
  // Time, and number of further pushes, after which the batch targets are computed again.
  NanoTime retarget_at_;
  int64_t retarget_after_ = 0;
  int64_t targets_computed_ = 0;
  NanoTime swept_;
};

}  // namespace saccade::server
