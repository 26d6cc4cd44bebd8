// The batcher's decisions as a state machine: no thread, no lock, no clock of its own.
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

// Not thread-safe.
class BatchQueue {
 public:
  // A task that will not run, and why; Reject was not called yet.
  struct Dropped {
    std::unique_ptr<BatchTask> task;
    absl::Status why;
  };

  struct Polled {
    // Empty if no batch is due: look again at ready_at(), or when something was pushed.
    std::vector<std::unique_ptr<BatchTask>> batch;
    std::vector<Dropped> dropped;
  };

  // REQUIRES: CheckOptions(options).ok().
  explicit BatchQueue(const BatcherOptions& options) : options_(options) {}

  // Takes `task` only if OK; the errors are those of Batcher::Submit. If the queue is full, what is dead in
  // it goes to `dropped` first.
  absl::Status Push(std::unique_ptr<BatchTask>& task, absl::Time now, std::vector<Dropped>* dropped);

  // Drops what is dead and hands out a batch if one is due. Looks at every waiting task.
  Polled Poll(absl::Time now);

  // No Push from here on; what waits is due at once.
  void Close() { closed_ = true; }
  bool closed() const { return closed_; }

  // Empties the queue.
  std::vector<std::unique_ptr<BatchTask>> TakeAll();

  // When Poll may have something to hand out: InfinitePast() for at once, InfiniteFuture() for an empty
  // queue.
  absl::Time ready_at() const;

  // Pictures waiting.
  int64_t queued() const { return queued_; }

 private:
  // Higher priority, then earlier deadline, then earlier arrival, then order of Push. 64 bits, as a priority
  // is negated.
  using Place = std::tuple<int64_t, absl::Time, absl::Time, int64_t>;
  using Waiting = std::map<Place, std::unique_ptr<BatchTask>>;

  absl::Status CheckWaiting(const BatchTask& task, absl::Time now) const;
  void DropDead(absl::Time now, std::vector<Dropped>* dropped);
  std::vector<std::unique_ptr<BatchTask>> TakeBatch();
  void FindUrgency();

  const BatcherOptions options_;
  Waiting waiting_;
  bool closed_ = false;
  int64_t queued_ = 0;
  int64_t pushed_ = 0;
  // Over `waiting_`; InfiniteFuture() when it is empty.
  absl::Time oldest_arrival_ = absl::InfiniteFuture();
  absl::Time earliest_deadline_ = absl::InfiniteFuture();
};

}  // namespace saccade::server
