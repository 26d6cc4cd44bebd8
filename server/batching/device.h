// What computes, the cores or the GPUs, shared by the threads of all the models on it.
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

// A batch that takes less time than to hand it to its instance's thread would: for the thread that finds it
// due.
struct TinyBatch {
  int instance = 0;
  std::vector<std::unique_ptr<BatchTask>> tasks;
};

// A Scheduler for threads. Thread-safe; BatchTask::Reject is never called with its lock held.
class Device {
 public:
  using Tasks = std::vector<std::unique_ptr<BatchTask>>;

  // `clock` must outlive it.
  Device(const SchedulerOptions& options, Clock* clock) : clock_(clock), scheduler_(options) {}
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  // To be called now and then: answers those in the queues who went away, or whose time is over, although
  // every instance is busy, or hangs.
  void Sweep() ABSL_LOCKS_EXCLUDED(mutex_);

  // The rest is for Batcher, whose comments say what they do.
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

  // Hands out what is due, to whoever's instance it is for; a tiny batch of `model` to `tiny`, if it is not
  // null.
  void HandOut(Dropped* dropped, Scheduler::ModelId model = -1, std::optional<TinyBatch>* tiny = nullptr)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Clock* const clock_;
  mutable absl::Mutex mutex_;
  Scheduler scheduler_ ABSL_GUARDED_BY(mutex_);
  // Batches that their instances' threads have not fetched yet.
  std::map<std::pair<Scheduler::ModelId, int>, Tasks> handed_out_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace saccade::server
