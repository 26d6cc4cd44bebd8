// What waits for one model: its buckets, its bounds, and when a batch of it is due.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/batching/batch_task.h"
#include "server/batching/batcher_options.h"
#include "server/batching/bucket.h"
#include "server/batching/scheduler.h"

namespace saccade::server {

// Times are in nanoseconds since the epoch. Not thread-safe.
class ModelQueue {
 public:
  using Tasks = std::vector<std::unique_ptr<BatchTask>>;
  using Dropped = std::vector<Scheduler::Dropped>;

  // A batch that may be computed now.
  struct Due {
    Bucket* bucket = nullptr;
    int64_t priority_class = 0;
    // When it has to start at the latest for its first member's deadline.
    int64_t latest_start = kNever;
  };

  explicit ModelQueue(const BatcherOptions& options);

  const BatcherOptions& options() const { return options_; }
  bool empty() const { return waiting_.empty(); }
  int64_t queued() const { return queued_; }
  // Levels of priority whose load is known.
  size_t levels() const { return levels_.size(); }

  // A pass ended; without a time, if it was no ordinary one.
  void Learn(int64_t bucket, int64_t size, std::optional<double> took, int64_t now);

  // As Scheduler::NoRoomFor.
  void NoRoomFor(int64_t bucket, int64_t size, int64_t now);

  // As Scheduler::Push; `ahead` is how long the instances are busy with what they have, and with what other
  // models have, before they come to this model's queue; `instances` how many compute at the same time, for
  // it.
  absl::Status Push(std::unique_ptr<BatchTask>& task, int64_t now, double ahead, double instances,
                    Dropped* dropped);

  // As Scheduler::Consider; `ahead` and `instances` as for Push.
  absl::Status Consider(const BatchTask::Traits& traits, absl::Span<const int64_t> buckets, int64_t now,
                        double ahead, double instances, Dropped* dropped);

  // The due batch that goes first, if there is one (`at_once`: nobody waits for company); drops what cannot
  // be in time any more. Otherwise `wake_at` becomes the time when there may be one.
  bool FindDue(int64_t now, double instances, bool at_once, Due* due, int64_t* wake_at, Dropped* dropped);

  // Not empty after FindDue found it, except for what was cancelled in between.
  Tasks Take(Bucket& bucket, int64_t now, Dropped* dropped);

  Tasks TakeAll();

  // Drops what is dead or cannot be in time any more, if that was not done a moment ago.
  void SweepAll(int64_t now, Dropped* dropped);

 private:
  // A class of priority: the pictures of it that wait, and their cost.
  struct Level {
    int64_t priority_class = 0;
    int64_t queued = 0;
    double backlog = 0;
    ArrivalRate arrivals = {};
  };

  // How long an arrival counts in what its level's share of the load is.
  static constexpr double kLevelMemory = 500e6;

  Bucket& Find(int64_t id, int64_t now);
  const QueuePolicy& PolicyOf(int64_t priority_class) const;
  Level& LevelOf(int64_t priority_class);
  void ForgetLevel(int64_t kept, int64_t now);
  const BatchTarget& TargetOf(const Bucket& bucket, int64_t priority_class) const;
  int64_t ClassOf(int priority) const;
  void Doubt(Bucket& bucket, int64_t size, double left, int64_t now);
  // Where a task with such traits would wait, and until when; its entry lacks the task.
  std::pair<Bucket::Place, Bucket::Entry> PlaceOf(const BatchTask::Traits& traits);
  void Count(Bucket& bucket, const Bucket::Place& place, int64_t size, int64_t now);
  absl::Status CheckRoom(int64_t priority_class, int64_t size, bool take, int64_t now, Dropped* dropped);
  Bucket* LastBehind(int64_t priority_class) const;
  void Evict(Bucket& bucket, Dropped* dropped);
  double WorkAhead(const Bucket::Place& place) const;
  absl::Status CheckInTime(int64_t size, const Bucket& bucket, const Bucket::Place& place, int64_t now,
                           double ahead, double instances) const;
  absl::Status CheckKnownInTime(absl::Span<const int64_t> buckets, const Bucket::Place& place, int64_t now,
                                double ahead, double instances) const;

  void Add(Bucket& bucket, const Bucket::Place& place, Bucket::Entry entry);
  // `it` is the next one afterwards.
  std::unique_ptr<BatchTask> Remove(Bucket& bucket, Bucket::Queue::iterator& it);
  // Whether the entry may still be computed; if not, it is dropped or delayed, and `it` is the next one.
  bool KeepWaiting(Bucket& bucket, Bucket::Queue::iterator& it, int64_t now, Dropped* dropped);
  void Sweep(Bucket& bucket, int64_t now, Dropped* dropped);
  void Shed(Bucket& bucket, int64_t now, Dropped* dropped);
  void Forget();
  static int64_t InTime(const Bucket& bucket, int64_t most, int64_t now);
  int64_t MostTogether(const Bucket& bucket, int64_t now) const;
  int64_t BatchSize(const Bucket& bucket, int64_t now) const;
  int64_t DueAt(const Bucket& bucket, int64_t size, double instances, double others) const;
  void UpdateTargets(int64_t now, double instances);

  const BatcherOptions options_;
  absl::flat_hash_map<int64_t, std::unique_ptr<Bucket>> buckets_;
  // All of them, in the order in which they came.
  std::vector<Bucket*> known_;
  std::vector<Bucket*> waiting_;  // those that hold something
  // First the class that goes first.
  std::vector<Level> levels_;
  int64_t queued_ = 0;
  // What all that waits was taken to cost, in nanoseconds of one instance's time.
  double backlog_ = 0;
  int64_t pushed_ = 0;
  int64_t active_ = 0;
  // When targets are due again, by time or by pushes.
  int64_t retarget_at_ = 0;
  int64_t retarget_after_ = 0;
  int64_t swept_ = 0;
};

}  // namespace saccade::server
