// What waits for one bucket: its order, and when a batch of it is due.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/batching/batch_task.h"
#include "server/batching/batcher_options.h"

namespace saccade::server {

// OK while `task` may go on waiting.
absl::Status CheckWaiting(const BatchTask& task, const BatcherOptions& options, absl::Time now);

// Not thread-safe.
class BucketQueue {
 public:
  // Higher priority, then earlier deadline, then earlier arrival, then the order of Push over all buckets. 64
  // bits, as a priority is negated.
  using Place = std::tuple<int64_t, absl::Time, absl::Time, int64_t>;

  // A task that will not run, and why; Reject was not called yet.
  struct Dropped {
    std::unique_ptr<BatchTask> task;
    absl::Status why;
  };

  // `options` must outlive it.
  explicit BucketQueue(const BatcherOptions* options) : options_(options) {}

  void Push(const Place& place, std::unique_ptr<BatchTask> task);

  // Moves what is dead to `dropped`.
  void DropDead(absl::Time now, std::vector<Dropped>* dropped);

  // The first in order and whatever fits beside it.
  std::vector<std::unique_ptr<BatchTask>> TakeBatch();
  // Everything, in order.
  std::vector<std::unique_ptr<BatchTask>> TakeAll();

  // When a batch is due: InfinitePast() for at once, InfiniteFuture() if nothing waits.
  absl::Time ready_at() const;

  // REQUIRES: !empty().
  const Place& first() const { return waiting_.begin()->first; }
  bool empty() const { return waiting_.empty(); }
  // Pictures waiting.
  int64_t queued() const { return queued_; }

 private:
  void FindUrgency();

  const BatcherOptions* options_;
  std::map<Place, std::unique_ptr<BatchTask>> waiting_;
  int64_t queued_ = 0;
  // Over `waiting_`; InfiniteFuture() when it is empty.
  absl::Time oldest_arrival_ = absl::InfiniteFuture();
  absl::Time earliest_deadline_ = absl::InfiniteFuture();
};

}  // namespace saccade::server
