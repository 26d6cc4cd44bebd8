// The queue between decoded requests and the instances of one model.
//
// Order: higher priority, then earlier deadline, then earlier arrival. Tasks of one bucket share a batch, and
// buckets are never mixed. Each bucket is due for itself: when an instance asks and its batch is full, or its
// oldest request's arrival + max_queue_delay has come, or waiting until then would pass somebody's deadline,
// or the batcher is closed. Of the buckets that are due, the one that holds the first in order is next; so
// without a max_queue_delay an idle instance takes the first in order of all at once, and no bucket starves
// behind a busier one.
//
// Within its bucket the first in order is in the next batch, always; a task too large for the rest of a batch
// is passed over in favour of smaller ones behind it, and is at most one batch nearer to being first for
// that, so that nothing starves by its size. (A lower priority does starve while higher ones keep every
// instance busy; its deadline or the queue timeout answers it.)
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/batching/batch_queue.h"
#include "server/batching/batch_task.h"
#include "server/batching/batcher_options.h"
#include "server/core/clock.h"

namespace saccade::server {

// Thread-safe. BatchTask::Reject is never called with the lock held.
class Batcher {
 public:
  // INVALID_ARGUMENT for options that make no sense. `clock` must outlive the batcher.
  static absl::StatusOr<std::unique_ptr<Batcher>> Create(const BatcherOptions& options, Clock* clock);

  // Rejects what is still queued as UNAVAILABLE. REQUIRES: no other thread is in a call.
  ~Batcher();

  // Queues the task; never blocks. Ownership moves only if OK; otherwise `task` is untouched, Reject was not
  // called on it, and its owner answers the request. Errors:
  //   UNAVAILABLE         Close was called
  //   INVALID_ARGUMENT    the size is not within 1 .. max_batch_size
  //   CANCELLED           the client is gone already
  //   DEADLINE_EXCEEDED   its deadline is past, or it has waited longer than queue_timeout
  //   RESOURCE_EXHAUSTED  the queue is full, and of what was cancelled or past its deadline nothing is left
  //   in it
  absl::Status Submit(std::unique_ptr<BatchTask>& task);

  // For an instance's thread when it is idle: blocks until a batch is due and hands it out, 1 to
  // max_batch_size pictures of one bucket, none of them cancelled or past its deadline. Empty means closed
  // and drained: the thread may end. Queued tasks found dead are rejected on this thread: CANCELLED;
  // DEADLINE_EXCEEDED for a deadline and for queue_timeout alike (Triton answers the latter with UNAVAILABLE,
  // which here is kept for draining, because clients retry it, and retries are what an overloaded server
  // needs least).
  std::vector<std::unique_ptr<BatchTask>> Take();

  // No more Submit; what is queued is still handed out, without delay. Idempotent, does not block.
  void Close();

  // Pictures waiting now, over all buckets.
  int64_t queued() const;

 private:
  Batcher(const BatcherOptions& options, Clock* clock) : clock_(clock), queue_(options) {}

  Clock* const clock_;
  mutable absl::Mutex mutex_;
  BatchQueue queue_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace saccade::server
