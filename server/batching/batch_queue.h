// The batcher's decisions as a state machine: no thread, no lock, no clock of its own.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/batching/batch_task.h"
#include "server/batching/batcher_options.h"
#include "server/batching/bucket_queue.h"

namespace saccade::server {

// Not thread-safe.
class BatchQueue {
 public:
  using Dropped = BucketQueue::Dropped;

  struct Polled {
    // Empty if no batch is due: look again at ready_at(), or when something was pushed.
    std::vector<std::unique_ptr<BatchTask>> batch;
    std::vector<Dropped> dropped;
  };

  // REQUIRES: CheckOptions(options).ok().
  explicit BatchQueue(const BatcherOptions& options) : options_(options) {}
  BatchQueue(const BatchQueue&) = delete;
  BatchQueue& operator=(const BatchQueue&) = delete;

  // Takes `task` only if OK; the errors are those of Batcher::Submit. If the queue is full, what is dead in
  // it goes to `dropped` first.
  absl::Status Push(std::unique_ptr<BatchTask>& task, absl::Time now, std::vector<Dropped>* dropped);

  // Drops what is dead and hands out a batch of one bucket if one is due. Looks at every waiting task.
  Polled Poll(absl::Time now);

  // No Push from here on; what waits is due at once.
  void Close() { closed_ = true; }
  bool closed() const { return closed_; }

  // Empties the queue.
  std::vector<std::unique_ptr<BatchTask>> TakeAll();

  // When Poll may have something to hand out: InfinitePast() for at once, InfiniteFuture() for an empty
  // queue.
  absl::Time ready_at() const { return closed_ && queued_ > 0 ? absl::InfinitePast() : ready_at_; }

  // Pictures waiting, over all buckets.
  int64_t queued() const { return queued_; }

 private:
  using Buckets = std::map<int64_t, BucketQueue>;

  void DropDead(absl::Time now, std::vector<Dropped>* dropped);
  std::vector<std::unique_ptr<BatchTask>> TakeBatch(absl::Time now);
  void FindReady();

  const BatcherOptions options_;
  // None of them empty.
  Buckets buckets_;
  bool closed_ = false;
  int64_t queued_ = 0;
  int64_t pushed_ = 0;
  // When the first of `buckets_` is due. Kept, because idle instances look at it whenever the lock is freed.
  absl::Time ready_at_ = absl::InfiniteFuture();
};

}  // namespace saccade::server
