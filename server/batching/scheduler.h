// Decides what is computed next on the cores, or on the GPUs: a state machine without threads, locks or a
// clock of its own. All models on these devices share it; each model has queues by bucket, and instances that
// compute.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/batching/batch_task.h"
#include "server/batching/batcher_options.h"
#include "server/batching/learned_timing.h"
#include "server/batching/model_gauges.h"

namespace saccade::server {

struct SchedulerOptions {
  // Cores of each device. Passes that together need more do not run there at the same time; a single pass may
  // need more.
  int cores = 1;
};

// The device of each of a model's instances, by number: all the cores are one device, each GPU is one.
// Instances on several devices take from the same queue; the models on a device share it by their weights.
using Devices = std::vector<int>;

// Not thread-safe.
class Scheduler {
 public:
  using ModelId = int;

  // A task that will not run, and the reason. Reject has not been called yet.
  struct Dropped {
    std::unique_ptr<BatchTask> task;
    absl::Status why;
  };

  // Work for an idle instance: tasks of one bucket.
  struct Batch {
    ModelId model = 0;
    int instance = 0;
    std::vector<std::unique_ptr<BatchTask>> tasks;
    // Expected duration of the pass; 0 if nothing is known of its bucket.
    absl::Duration expected = absl::ZeroDuration();
  };

  // An instance that was set aside, or is in service again.
  struct InstanceChange {
    int instance = 0;
    bool set_aside = false;
  };
  // Maximum number of instances that are set aside, or in service again, when a pass ends.
  static constexpr size_t kMaxChanges = 2;
  using Changes = absl::InlinedVector<InstanceChange, kMaxChanges>;

  explicit Scheduler(const SchedulerOptions& options);
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Adds a model with idle instances, numbered like `devices`. REQUIRES: CheckOptions(options).ok(),
  // !devices.empty().
  ModelId AddModel(const BatcherOptions& options, const Devices& devices);

  // Returns the queued tasks, in no particular order. REQUIRES: none of its instances computes.
  std::vector<std::unique_ptr<BatchTask>> RemoveModel(ModelId model);

  // Push fails from now on; queued tasks are handed out without waiting for larger batches.
  void Close(ModelId model);

  // Records the measured time of a pass over `size` items of a bucket, before there are requests (by the
  // warm-up).
  void Learn(ModelId model, int64_t bucket, int64_t size, absl::Duration took);

  // Returns what is known of the passes' times, ascending by bucket; buckets without a measured pass are left
  // out.
  std::vector<LearnedTiming> Learned(ModelId model) const;

  // Takes `task` only if OK; otherwise it is unchanged, and its owner answers it. Errors:
  //   UNAVAILABLE         the model is closed
  //   INVALID_ARGUMENT    the size is not within 1 .. max_batch_size
  //   CANCELLED           the request is already cancelled
  //   DEADLINE_EXCEEDED   its deadline has passed, or would pass before a pass alone could end
  //   RESOURCE_EXHAUSTED  the queue is full, or queued tasks would make it late; carries a retry hint
  // Tasks that are evicted for it are added to `dropped`.
  absl::Status Push(ModelId model, std::unique_ptr<BatchTask>& task, absl::Time now,
                    std::vector<Dropped>* dropped);

  // Returns what Push would return now for one item of a task, for tasks that are expensive to create. The
  // task belongs in the first of `buckets`, or possibly in another of them: it is not rejected as late if one
  // of the known buckets would be in time. A rejected task counts as an arrival and must not be pushed; OK is
  // no guarantee that Push will succeed. REQUIRES: !buckets.empty().
  absl::Status Consider(ModelId model, const BatchTask::Traits& traits, absl::Span<const int64_t> buckets,
                        absl::Time now, std::vector<Dropped>* dropped);

  // Returns the next batch, whose instance then counts as computing, or nullopt if none is due. Call it until
  // it returns nullopt after every Push, Finished, Failed and Close, and at wake_at(). Tasks that are
  // cancelled or can no longer be in time are added to `dropped`.
  std::optional<Batch> Next(absl::Time now, std::vector<Dropped>* dropped);

  // Drops tasks that are cancelled or can no longer be in time, of all models: Next checks them only when it
  // starts a batch of their model, or when it last looked at the model some milliseconds ago. Call it
  // periodically.
  void Sweep(absl::Time now, std::vector<Dropped>* dropped);

  // Marks the instance as idle after a pass that computed at least one item. `learn` is true if its pass was
  // an ordinary one, whose time may be learned.
  void Finished(ModelId model, int instance, absl::Time now, bool learn);

  // Ends a pass that computed nothing, by the fault of its input or of the instance, or not its whole batch
  // because its device was lost. `tasks` are those of its batch that are not answered yet. If they may be
  // tried once more on another instance, takes them and returns true; otherwise their owner answers them. The
  // instance takes no work until the pass should have ended, so that failing fast does not make it the first
  // to be idle again. An instance whose passes keep failing, while others compute the same items, is set
  // aside and later probed with a batch (InstanceHealth); the last one in service is not. `lost`: the
  // instance's device is lost, so that no later pass can succeed. It is then set aside at once, and for good.
  bool Failed(ModelId model, int instance, absl::Time now, std::vector<std::unique_ptr<BatchTask>>* tasks,
              bool lost = false);

  // Marks the instance as idle without a pass: all tasks of its batch were cancelled or late.
  void Skipped(ModelId model, int instance, absl::Time now);

  // Returns the changes since the last call. If it is called after each pass, no change needs memory.
  Changes TakeChanges(ModelId model);

  // Number of instances that are set aside.
  int64_t set_aside(ModelId model) const;

  // Reports that a pass over `size` items of a bucket ran out of memory. For a while batches have at most
  // half as many.
  void ReduceBatches(ModelId model, int64_t bucket, int64_t size, absl::Time now);

  // The time at which Next may return a batch even if nothing else happens.
  absl::Time wake_at() const;

  // Returns the demand since the last call: the time of one instance that all requests need that were pushed
  // or considered, including rejected ones. May exceed what the instances can do.
  absl::Duration TakeDemand(ModelId model);
  // The demand of all models since the last call, as time for which all devices together are busy.
  absl::Duration TakeDemand();

  // May be read on other threads while the scheduler is in use. The gauges are valid until the model is
  // removed, the demand as long as the scheduler.
  ModelGauges* gauges(ModelId model) const;
  Demand* demand() const;

  // Number of queued items, including those that wait for another instance after a failure.
  int64_t queued(ModelId model) const;
  bool closed(ModelId model) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace saccade::server
