// The devices that share one Scheduler: all the cores, or all the GPUs.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/batching/batch_task.h"
#include "server/batching/scheduler.h"
#include "server/core/clock.h"

namespace saccade::server {

// A batch whose pass takes less time than handing it to its instance's thread. The thread that finds it due
// computes it.
template <typename Task>
struct TinyBatch {
  int instance = 0;
  std::vector<std::unique_ptr<Task>> tasks;
};

// A Scheduler behind a lock, for threads. Models are added and used through DeviceModel. Thread-safe; calls
// BatchTask::Reject without holding the lock.
class DeviceGroup {
 public:
  // `clock` must outlive this object.
  DeviceGroup(const SchedulerOptions& options, Clock* clock) : clock_(clock), scheduler_(options) {}
  DeviceGroup(const DeviceGroup&) = delete;
  DeviceGroup& operator=(const DeviceGroup&) = delete;

  // Rejects queued tasks that are cancelled or late, even if every instance is busy or hangs. Call it
  // periodically.
  void Sweep() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  friend class ModelHandle;
  using Tasks = std::vector<std::unique_ptr<BatchTask>>;
  using Dropped = std::vector<Scheduler::Dropped>;

  static void RejectAll(Dropped dropped);
  // Blocks until the instance has a batch, the model is closed and drained, or scheduler_.wake_at() has
  // changed or passed. Stores the batch, if any. Returns true if the model is closed and drained.
  bool AwaitBatch(Scheduler::ModelId model, int instance, Tasks* batch, Dropped* dropped)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Assigns due batches to their instances' threads. If `tiny` is not null, the first tiny batch of `model`
  // is stored there instead.
  void HandOut(Dropped* dropped, Scheduler::ModelId model = -1,
               std::optional<TinyBatch<BatchTask>>* tiny = nullptr) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Clock* const clock_;
  mutable absl::Mutex mutex_;
  Scheduler scheduler_ ABSL_GUARDED_BY(mutex_);
  // Batches that their instances' threads have not fetched yet, by model and instance.
  std::map<std::pair<Scheduler::ModelId, int>, Tasks> handed_out_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace saccade::server
