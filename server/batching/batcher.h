// The queue between a model's decoded requests and its instances. What the order and the batches are,
// scheduler.h says; here is what the threads do with it.
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

// Thread-safe. BatchTask::Reject is never called with a lock held.
class Batcher {
 public:
  // One instance for each of `places`. INVALID_ARGUMENT for options that make no sense. `device` must outlive
  // the batcher.
  static absl::StatusOr<std::unique_ptr<Batcher>> Create(const BatcherOptions& options, const Places& places,
                                                         Device* device);

  // Rejects what is still queued as UNAVAILABLE. REQUIRES: no other thread is in a call, no instance
  // computes.
  ~Batcher();

  // What a pass over so many pictures of a bucket took, measured before there are requests.
  void Learn(int64_t bucket, int64_t size, absl::Duration took);

  // Queues the task; never blocks. Ownership moves only if OK; otherwise `task` is untouched, Reject was not
  // called on it, and its owner answers the request. Errors are Scheduler::Push's.
  // If `tiny` is set afterwards the caller has to compute that batch now, in its instance's name, and call
  // Finished: with null, all goes to the instances' threads.
  absl::Status Submit(std::unique_ptr<BatchTask>& task, std::optional<TinyBatch>* tiny = nullptr);

  // Whether Submit would take an item of a task that belongs in one of `buckets`, by Scheduler::Consider;
  // never blocks.
  absl::Status Consider(const BatchTask::Traits& traits, absl::Span<const int64_t> buckets);

  // For an idle instance's thread: blocks until there is a batch for it, 1 to max_batch_size pictures of one
  // bucket. Empty means closed and drained: the thread may end. Tasks found dead are rejected on this thread.
  std::vector<std::unique_ptr<BatchTask>> Take(int instance);

  // The instance has answered what it took. `learn`: it computed all of it in one pass, as usual. `tiny` is
  // as for Submit: who has computed one such batch goes on with the next, and no other thread is woken.
  void Finished(int instance, bool learn, std::optional<TinyBatch>* tiny = nullptr);

  // A pass over so many items of a bucket found no memory: for a while fewer go together.
  void NoRoomFor(int64_t bucket, int64_t size);

  // No more Submit; what is queued is still handed out, without delay. Idempotent, does not block.
  void Close();

  // Pictures waiting now, over all buckets.
  int64_t queued() const;

 private:
  Batcher(Device* device, Scheduler::ModelId model) : device_(device), model_(model) {}

  Device* const device_;
  const Scheduler::ModelId model_;
};

}  // namespace saccade::server
