// The devices that share one Scheduler: all the cores, or all the GPUs.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/batching/batch_task.h"
#include "server/batching/scheduler.h"
#include "server/batching/signal.h"
#include "server/core/clock.h"

namespace saccade::server {

// A batch whose pass takes less time than handing it to its instance's thread. The thread that finds it due
// computes it.
template <typename Task>
struct TinyBatch {
  int instance = 0;
  std::vector<std::unique_ptr<Task>> tasks;
};

// Stands in for the threads of a DeviceGroup and of its models, which a simulation does not have. Called with
// the group's lock held: what the woken thread would do has to follow later.
class Waker {
 public:
  virtual ~Waker() = default;

  // The instance's thread, if it waits in Take(), would go on.
  virtual void WakeInstance(Scheduler::ModelId model, int instance) = 0;
  // The timer's thread would call HandOutDue().
  virtual void WakeTimer() = 0;
};

// A Scheduler behind a lock, for threads. Models are added and used through DeviceModel. Thread-safe; calls
// BatchTask::Reject without holding the lock. A batch wakes only the thread of its instance, and one timer
// thread waits for batches that become due with time, so idle threads do not slow down busy ones.
class DeviceGroup {
 public:
  // Told the text of an exception that was caught. Thread-safe; does not throw.
  using Report = std::function<void(const char* error)>;

  // `clock` must outlive this object. `report` may be null. With a `waker`, which must outlive this object,
  // there is no timer thread, and nothing blocks.
  DeviceGroup(const SchedulerOptions& options, Clock* clock, Report report = nullptr, Waker* waker = nullptr);
  // REQUIRES: all models were removed.
  ~DeviceGroup();
  DeviceGroup(const DeviceGroup&) = delete;
  DeviceGroup& operator=(const DeviceGroup&) = delete;

  // Rejects queued tasks that are cancelled or late, even if every instance is busy or hangs. Call it
  // periodically.
  void Sweep() ABSL_LOCKS_EXCLUDED(mutex_);
  // The same, but does nothing while another thread holds the lock. For devices whose threads run only on
  // idle cores: one of them may hold the lock for long without a core.
  void TrySweep() ABSL_LOCKS_EXCLUDED(mutex_);

  // Hands out what is due, and returns when the next batch is; nullopt if the group is being destroyed.
  // Called by the timer's thread, in a loop.
  std::optional<absl::Time> HandOutDue() ABSL_LOCKS_EXCLUDED(mutex_);

  // Cores of each device.
  int cores() const { return cores_; }

  // See Scheduler::TakeDemand. Takes no lock.
  absl::Duration TakeDemand() { return demand_->Take(); }

 private:
  friend class ModelHandle;
  using Tasks = std::vector<std::unique_ptr<BatchTask>>;
  using Dropped = std::vector<Scheduler::Dropped>;

  struct Instance {
    // A batch that its thread has not fetched yet; guarded by the group's mutex.
    Tasks batch;
    // Set when there is a batch, and when the model is closed and drained.
    Signal signal;
  };
  // Instances keep their addresses while their model exists.
  using Instances = std::vector<std::unique_ptr<Instance>>;

  // Sweep() without rejecting what is dropped.
  void SweepInto(Dropped* dropped) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // A task whose Reject() throws is destroyed; the others are rejected all the same.
  void RejectAll(Dropped dropped) const;
  // Holds the tasks that are dropped under the lock. The destructor rejects them, also if something throws.
  // Declare it before the lock is taken, so that the lock is free then.
  struct RejectedAtEnd {
    explicit RejectedAtEnd(const DeviceGroup* of) : group(of) {}
    ~RejectedAtEnd() { group->RejectAll(std::move(tasks)); }
    RejectedAtEnd(const RejectedAtEnd&) = delete;
    RejectedAtEnd& operator=(const RejectedAtEnd&) = delete;

    const DeviceGroup* const group;
    Dropped tasks;
  };
  void Tell(const char* error) const {
    if (report_ != nullptr) report_(error);
  }
  // Whether the model is closed and all its batches were handed out.
  bool IsDrained(Scheduler::ModelId model) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Assigns due batches to their instances' threads. If `tiny` is not null, the first tiny batch of `model`
  // is stored there instead.
  void HandOut(Dropped* dropped, Scheduler::ModelId model = -1,
               std::optional<TinyBatch<BatchTask>>* tiny = nullptr) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // As HandOut(). If that throws, the timer's thread tries again.
  void HandOutSafely(Dropped* dropped, Scheduler::ModelId model = -1,
                     std::optional<TinyBatch<BatchTask>>* tiny = nullptr)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Wakes the threads of drained models.
  void EndDrained() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The timer thread's loop: hands out the batches that become due with time.
  void RunTimer() ABSL_LOCKS_EXCLUDED(mutex_);
  void WakeInstance(Scheduler::ModelId model, int index, Instance& instance)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WakeTimer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int cores_;
  Clock* const clock_;
  const Report report_;
  // Null in the daemon.
  Waker* const waker_;
  mutable absl::Mutex mutex_;
  Scheduler scheduler_ ABSL_GUARDED_BY(mutex_);
  // The scheduler's.
  Demand* const demand_;
  absl::flat_hash_map<Scheduler::ModelId, Instances> instances_ ABSL_GUARDED_BY(mutex_);
  // Closed models that are not drained yet, or whose threads EndDrained() has not woken.
  std::vector<Scheduler::ModelId> closing_ ABSL_GUARDED_BY(mutex_);
  // When the timer's thread wakes by itself.
  absl::Time timer_at_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  // HandOut() has failed, and batches may be due.
  bool unfinished_ ABSL_GUARDED_BY(mutex_) = false;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  Signal timer_signal_;
  std::thread timer_;
};

}  // namespace saccade::server
