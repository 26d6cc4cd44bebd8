// The daemon's DeviceGroup, run on simulated devices: its locks, wake-ups and tiny batches, with virtual
// threads.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "server/batching/device_model.h"
#include "server/simulation/policy.h"
#include "server/simulation/random.h"
#include "server/simulation/sim_devices.h"
#include "server/simulation/virtual_clock.h"

namespace saccade::server::simulation {

// A defect that a test builds in, to see that an invariant finds it.
enum class Defect {
  kNone,
  // Consider() accepts everything, or rejects what has less than 30 ms left.
  kConsidersNothing,
  kConsidersTooStrictly,
  // Sweep() is not called.
  kNeverSweeps,
  // One of 50 wake-ups of instances is lost, another thread is woken as well as one of 50, or the timer's
  // wake-ups are lost.
  kLosesWakeUps,
  kWakesInVain,
  kTimerOversleeps,
  // The catalog's thread is not woken, requests wait for models until those are loaded or not even so long,
  // idle models stay or go after half the time, memory has no bound, or the model that was used last is
  // unloaded first.
  kCatalogSleeps,
  kForgetsWaiters,
  kResumesTooEarly,
  kNeverUnloads,
  kUnloadsTooEarly,
  kIgnoresMemory,
  kUnloadsTheNewest,
  // Loads that run count with no memory, and models are measured beside other loads.
  kForgetsRunningLoads,
  kMeasuresBesideOthers,
  // Threads that must not compute passes (LimitInlinePasses) do.
  kIgnoresLimits,
};

// Each instance has a virtual thread, which waits, runs or has ended as ServedModel::RunInstance() does, and
// the group has a virtual timer thread. What a wake-up leads to happens at the same virtual time, in Next().
class GroupPolicy final : public Policy, private Waker {
 public:
  struct Options {
    SchedulerOptions scheduler;
    std::vector<BatcherOptions> batchers;
    std::vector<ModelOptions> models;
    // By model: threads that bring requests may compute tiny batches. Empty: none may.
    std::vector<bool> lends = {};
    uint64_t seed = 1;
    Defect defect = Defect::kNone;
  };

  // Teaches the scheduler the noise-free times of batches of size one and of the maximum size, as the
  // daemon's warm-up does. `clock` must outlive the object.
  GroupPolicy(const Options& options, VirtualClock* clock);
  ~GroupPolicy() override;

  absl::Status Push(int model, std::unique_ptr<BatchTask>& task, absl::Time now) override;
  absl::Status Consider(int model, const BatchTask::Traits& traits, absl::Span<const int64_t> buckets,
                        absl::Time now) override;
  void Sweep(absl::Time now) override;
  std::optional<Batch> Next(absl::Time now) override;
  void Finished(int model, int instance, absl::Time now, bool learn) override;
  void Failed(int model, int instance, absl::Time now,
              std::vector<std::unique_ptr<BatchTask>>* tasks) override;
  absl::Time wake_at() const override { return timer_at_; }

  // Close stops a model and Reload loads it again, as the daemon does. REQUIRES for Reload: Ended(), and no
  // instance computes.
  void Close(int model) { models_[model].handle->Close(); }
  void Reload(int model);
  // True if all the instances' threads have ended, so that the model can be removed.
  bool Ended(int model) const { return models_[model].ended == models_[model].threads.size(); }

  int64_t queued(int model) const { return models_[model].handle->queued(); }
  // How often a thread was woken that found neither a batch nor the end of its model.
  int64_t woken_in_vain() const { return woken_in_vain_; }
  // Number of tiny batches.
  int64_t tiny() const { return tiny_; }

 private:
  using Handle = DeviceModel<BatchTask>;
  using Tiny = TinyBatch<BatchTask>;

  // The thread of an instance.
  struct Thread {
    enum class State { kWaits, kRuns, kEnded };
    State state = State::kWaits;
    // It was woken since it began to wait, or while it ran.
    bool signalled = false;
  };
  struct Model {
    std::unique_ptr<Handle> handle;
    std::vector<Thread> threads;
    size_t ended = 0;
    // By instance, while it computes a batch on another thread: until when that continues with further ones.
    std::vector<std::optional<absl::Time>> lent_until;
  };
  struct Runnable {
    int model = 0;
    int instance = 0;
    bool was_woken = false;
  };

  void WakeInstance(Scheduler::ModelId id, int instance) override;
  void WakeTimer() override;

  void Load(int model);
  // The thread continues with Take().
  void Run(int model, int instance, bool was_woken);
  std::optional<Batch> Take(const Runnable& runnable);
  void Lend(int model, std::optional<Tiny> tiny, absl::Time until);
  // Ends a pass with `end`, which is passed where to store the next tiny batch; null for none.
  template <typename End>
  void EndPass(int model, int instance, absl::Time now, const End& end);

  const Options options_;
  DeviceGroup group_;
  std::vector<Model> models_;
  // The index of the model with this scheduler id.
  std::vector<int> by_id_;
  Random random_;

  // The batches and threads that Next() continues with.
  std::deque<Batch> lent_;
  std::deque<Runnable> runnable_;
  // The timer's thread: when it wakes by itself, and whether it was woken. It starts awake.
  absl::Time timer_at_ = absl::InfiniteFuture();
  bool timer_runs_ = true;

  int64_t woken_in_vain_ = 0;
  int64_t tiny_ = 0;
  int64_t wake_ups_ = 0;
};

}  // namespace saccade::server::simulation
