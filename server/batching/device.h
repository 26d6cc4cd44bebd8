// A Scheduler for threads: shared by all models that compute on the cores, or on the GPUs.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "server/batching/batch_task.h"
#include "server/batching/scheduler.h"
#include "server/core/clock.h"

namespace saccade::server {

// A batch whose pass takes less time than handing it to its instance's thread. The thread that finds it due
// computes it.
struct TinyBatch {
  int instance = 0;
  std::vector<std::unique_ptr<BatchTask>> tasks;
};

// A Scheduler behind a lock. Thread-safe; calls BatchTask::Reject without holding the lock.
class Device {
 public:
  using Tasks = std::vector<std::unique_ptr<BatchTask>>;

  // `clock` must outlive this object.
  Device(const SchedulerOptions& options, Clock* clock) : clock_(clock), scheduler_(options) {}
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  // Rejects queued tasks that are cancelled or late, even if every instance is busy or hangs. Call it
  // periodically.
  void Sweep() ABSL_LOCKS_EXCLUDED(mutex_);

  // The following methods implement those of Batcher; see there.
  Scheduler::ModelId AddModel(const BatcherOptions& options, const Places& places)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void RemoveModel(Scheduler::ModelId model) ABSL_LOCKS_EXCLUDED(mutex_);
  void Learn(Scheduler::ModelId model, int64_t bucket, int64_t size, absl::Duration took)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Submit(Scheduler::ModelId model, std::unique_ptr<BatchTask>& task,
                      std::optional<TinyBatch>* tiny) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Consider(Scheduler::ModelId model, const BatchTask::Traits& traits,
                        absl::Span<const int64_t> buckets) ABSL_LOCKS_EXCLUDED(mutex_);
  Tasks Take(Scheduler::ModelId model, int instance) ABSL_LOCKS_EXCLUDED(mutex_);
  void Finished(Scheduler::ModelId model, int instance, bool learn, std::optional<TinyBatch>* tiny)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void NoRoomFor(Scheduler::ModelId model, int64_t bucket, int64_t size) ABSL_LOCKS_EXCLUDED(mutex_);
  void Close(Scheduler::ModelId model) ABSL_LOCKS_EXCLUDED(mutex_);
  int64_t queued(Scheduler::ModelId model) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Dropped = std::vector<Scheduler::Dropped>;

  // Assigns due batches to their instances' threads. If `tiny` is not null, the first tiny batch of `model`
  // is stored there instead.
  void HandOut(Dropped* dropped, Scheduler::ModelId model = -1, std::optional<TinyBatch>* tiny = nullptr)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Clock* const clock_;
  mutable absl::Mutex mutex_;
  Scheduler scheduler_ ABSL_GUARDED_BY(mutex_);
  // Batches that their instances' threads have not fetched yet, by model and instance.
  std::map<std::pair<Scheduler::ModelId, int>, Tasks> handed_out_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace saccade::server
