// The queue between a model's decoded requests and its instances: a thread-safe handle on one model of a
// Device. scheduler.h defines the order of requests and the size of batches.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/batching/batch_task.h"
#include "server/batching/batcher_options.h"
#include "server/batching/device.h"

namespace saccade::server {

// Thread-safe. Calls BatchTask::Reject without holding a lock.
class Batcher {
 public:
  // Creates one instance per element of `places`. INVALID_ARGUMENT for invalid options. `device` must outlive
  // the batcher.
  static absl::StatusOr<std::unique_ptr<Batcher>> Create(const BatcherOptions& options, const Places& places,
                                                         Device* device);

  // Rejects queued tasks with UNAVAILABLE. REQUIRES: no other thread is in a call, and no instance computes.
  ~Batcher();

  // Records the measured time of a pass over `size` items of a bucket, before there are requests.
  void Learn(int64_t bucket, int64_t size, absl::Duration took);

  // Queues the task; never blocks. Takes ownership only if OK; otherwise `task` is unchanged, Reject was not
  // called on it, and the caller must answer the request. Errors are those of Scheduler::Push.
  // If `*tiny` is set on return, which may happen on error too, the caller must compute that batch now on
  // behalf of its instance and then call Finished. If `tiny` is null, all batches go to the instances'
  // threads.
  absl::Status Submit(std::unique_ptr<BatchTask>& task, std::optional<TinyBatch>* tiny = nullptr);

  // Returns the error that Submit would return for an item of such a task that belongs in one of `buckets`
  // (see Scheduler::Consider). Never blocks.
  absl::Status Consider(const BatchTask::Traits& traits, absl::Span<const int64_t> buckets);

  // Called by the thread of an idle instance. Blocks until there is a batch for it: 1 to max_batch_size items
  // of one bucket. An empty result means that the batcher is closed and drained, and that the thread may end.
  // Tasks found to be cancelled or late are rejected on this thread.
  std::vector<std::unique_ptr<BatchTask>> Take(int instance);

  // Marks the instance as idle after it answered its batch. `learn` is true if it computed the whole batch in
  // one ordinary pass, whose time may be learned. `tiny` as for Submit: the thread that computed one tiny
  // batch continues with the next, without waking another thread.
  void Finished(int instance, bool learn, std::optional<TinyBatch>* tiny = nullptr);

  // Reports that a pass over `size` items of a bucket ran out of memory. Batches are smaller for a while.
  void NoRoomFor(int64_t bucket, int64_t size);

  // Ends submission. Queued tasks are still handed out, without waiting for more. Idempotent, does not block.
  void Close();

  // Number of queued items, over all buckets.
  int64_t queued() const;

 private:
  Batcher(Device* device, Scheduler::ModelId model) : device_(device), model_(model) {}

  Device* const device_;
  const Scheduler::ModelId model_;
};

}  // namespace saccade::server
