// The queue between a model's decoded requests and its instances: a thread-safe handle on one model of a
// DeviceGroup. scheduler.h defines the order of requests and the size of batches.
#pragma once

#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/batching/batch_task.h"
#include "server/batching/batcher_options.h"
#include "server/batching/device_group.h"
#include "server/batching/learned_timing.h"

namespace saccade::server {

// The part of DeviceModel that does not depend on the type of the tasks. Thread-safe. Calls BatchTask::Reject
// without holding a lock.
class ModelHandle {
 public:
  ModelHandle(const ModelHandle&) = delete;
  ModelHandle& operator=(const ModelHandle&) = delete;

  // Records the measured time of a pass over `size` items of a bucket, before there are requests.
  void Learn(int64_t bucket, int64_t size, absl::Duration took);

  // See Scheduler::Learned.
  std::vector<LearnedTiming> Learned() const;

  // Returns the error that Submit would return for an item of such a task that belongs in one of `buckets`
  // (see Scheduler::Consider). Never blocks.
  absl::Status Consider(const BatchTask::Traits& traits, absl::Span<const int64_t> buckets);

  // Reports that a pass over `size` items of a bucket ran out of memory. Batches are smaller for a while.
  void ReduceBatches(int64_t bucket, int64_t size);

  // The number by which a Waker knows the model.
  Scheduler::ModelId id() const { return model_; }

  // Ends submission. Queued tasks are still handed out, without waiting for more. Idempotent, does not block.
  void Close();

  // The model's figures, for metrics: they are read without a lock.
  // See Scheduler::TakeDemand.
  absl::Duration TakeDemand() { return gauges_->demand.Take(); }
  // Number of queued items, over all buckets.
  int64_t queued() const { return gauges_->queued.load(std::memory_order_relaxed); }
  // Number of instances that are set aside.
  int64_t set_aside() const { return gauges_->set_aside.load(std::memory_order_relaxed); }

 protected:
  using Tasks = std::vector<std::unique_ptr<BatchTask>>;
  using Changes = Scheduler::Changes;

  // REQUIRES: CheckOptions(options).ok().
  ModelHandle(DeviceGroup* group, const BatcherOptions& options, const Devices& devices);
  ~ModelHandle();

  // See DeviceModel.
  absl::Status Submit(std::unique_ptr<BatchTask>& task, std::optional<TinyBatch<BatchTask>>* tiny);
  Tasks Take(int instance);
  std::optional<Tasks> TryTake(int instance);
  Changes Finished(int instance, bool learn, std::optional<TinyBatch<BatchTask>>* tiny);
  Changes Failed(int instance, Tasks* tasks, std::optional<TinyBatch<BatchTask>>* tiny, bool lost);
  void Skipped(int instance, std::optional<TinyBatch<BatchTask>>* tiny);

 private:
  // Also returns what wakes the instance's thread.
  std::optional<Tasks> TryTake(int instance, Signal** signal);
  template <typename End>
  Changes EndPass(std::optional<TinyBatch<BatchTask>>* tiny, const End& end);

  DeviceGroup* const group_;
  const Scheduler::ModelId model_;
  // The scheduler's.
  ModelGauges* const gauges_;
};

// A model whose tasks are of type `Task`, a subclass of BatchTask. The destructor removes the model from its
// devices: it rejects queued tasks with UNAVAILABLE. REQUIRES for the destructor: no other thread is in a
// call, and no instance computes.
template <typename Task>
class DeviceModel : public ModelHandle {
  static_assert(std::is_base_of_v<BatchTask, Task>);

 public:
  using Tasks = std::vector<std::unique_ptr<Task>>;
  using ModelHandle::Changes;

  // Adds a model with one instance per element of `devices`. INVALID_ARGUMENT for invalid options. `group`
  // must outlive the result.
  static absl::StatusOr<std::unique_ptr<DeviceModel>> Create(const BatcherOptions& options,
                                                             const Devices& devices, DeviceGroup* group) {
    if (absl::Status sound = CheckOptions(options); !sound.ok()) return sound;
    return std::unique_ptr<DeviceModel>(new DeviceModel(group, options, devices));
  }

  // Queues the task; never blocks. Takes ownership only if OK; otherwise `task` is unchanged, Reject was not
  // called on it, and the caller must answer the request. Errors are those of Scheduler::Push.
  // If `*tiny` is set on return, which may happen on error too, the caller must compute that batch now on
  // behalf of its instance and then call Finished. If `tiny` is null, all batches go to the instances'
  // threads.
  absl::Status Submit(std::unique_ptr<Task>& task, std::optional<TinyBatch<Task>>* tiny = nullptr) {
    std::unique_ptr<BatchTask> queued = std::move(task);
    std::optional<TinyBatch<BatchTask>> found;
    absl::Status taken = ModelHandle::Submit(queued, tiny == nullptr ? nullptr : &found);
    task.reset(static_cast<Task*>(queued.release()));
    Give(std::move(found), tiny);
    return taken;
  }

  // Called by the thread of an idle instance. Blocks until there is a batch for it: 1 to max_batch_size items
  // of one bucket. An empty result means that the model is closed and drained, and that the thread may end.
  // Tasks found to be cancelled or late are rejected on this thread.
  // If this throws, the tasks are destroyed, and the instance is idle again.
  Tasks Take(int instance) { return Fetched(instance, ModelHandle::Take(instance)); }

  // As Take(), but returns nullopt where that would block.
  std::optional<Tasks> TryTake(int instance) {
    std::optional<ModelHandle::Tasks> taken = ModelHandle::TryTake(instance);
    if (!taken) return std::nullopt;
    return Fetched(instance, *std::move(taken));
  }

  // Marks the instance as idle after it computed at least one item of its batch. `learn` is true if it
  // computed the whole batch in one ordinary pass, whose time may be learned. `tiny` as for Submit: the
  // thread that computed one tiny batch continues with the next, without waking another thread. Returns the
  // instances that were set aside by this, or are in service again.
  Changes Finished(int instance, bool learn, std::optional<TinyBatch<Task>>* tiny = nullptr) {
    std::optional<TinyBatch<BatchTask>> found;
    Changes changes = ModelHandle::Finished(instance, learn, tiny == nullptr ? nullptr : &found);
    Give(std::move(found), tiny);
    return changes;
  }

  // Instead of Finished(), if nothing of the batch was computed, or not all because the device was lost.
  // `*tasks` are those that are not answered. They are queued for another instance and `*tasks` is then
  // empty, or the caller must answer them. See Scheduler::Failed, also for `lost`.
  Changes Failed(int instance, Tasks* tasks, std::optional<TinyBatch<Task>>* tiny = nullptr,
                 bool lost = false) {
    ModelHandle::Tasks failed;
    try {
      failed.reserve(tasks->size());
    } catch (const std::bad_alloc&) {
      // As if no other instance could try: the caller answers `*tasks`.
      Skipped(instance, tiny);
      return {};
    }
    for (auto& task : *tasks) failed.push_back(std::move(task));
    tasks->clear();
    std::optional<TinyBatch<BatchTask>> found;
    Changes changes = ModelHandle::Failed(instance, &failed, tiny == nullptr ? nullptr : &found, lost);
    Give(std::move(found), tiny);
    // In the room that it had, so that nothing is allocated.
    for (auto& task : failed) tasks->emplace_back(static_cast<Task*>(task.release()));
    return changes;
  }

  // Instead of Finished(), if all tasks of the batch had ended before the pass began.
  void Skipped(int instance, std::optional<TinyBatch<Task>>* tiny = nullptr) {
    std::optional<TinyBatch<BatchTask>> found;
    ModelHandle::Skipped(instance, tiny == nullptr ? nullptr : &found);
    Give(std::move(found), tiny);
  }

 private:
  using ModelHandle::ModelHandle;

  Tasks Fetched(int instance, ModelHandle::Tasks taken) {
    try {
      return Typed(std::move(taken));
    } catch (const std::bad_alloc&) {
      ModelHandle::Skipped(instance, nullptr);
      throw;
    }
  }

  // Stores a tiny batch in `*tiny`. If there is no memory, its tasks are destroyed, and its instance is idle
  // again.
  void Give(std::optional<TinyBatch<BatchTask>> found, std::optional<TinyBatch<Task>>* tiny) {
    if (!found) return;
    const int instance = found->instance;
    try {
      tiny->emplace(TinyBatch<Task>{instance, Typed(std::move(found->tasks))});
    } catch (const std::bad_alloc&) {
      ModelHandle::Skipped(instance, nullptr);
    }
  }

  // All tasks of the model came from Submit, so they are of type Task.
  static Tasks Typed(ModelHandle::Tasks tasks) {
    Tasks typed;
    typed.reserve(tasks.size());
    for (auto& task : tasks) typed.emplace_back(static_cast<Task*>(task.release()));
    return typed;
  }
};

}  // namespace saccade::server
