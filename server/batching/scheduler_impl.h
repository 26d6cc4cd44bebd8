// The state of a Scheduler and the choice of the next batch. Internal to scheduler*.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/container/btree_set.h"
#include "server/batching/instance_health.h"
#include "server/batching/model_queue.h"
#include "server/batching/nanos.h"
#include "server/batching/scheduler.h"

namespace saccade::server {

struct Scheduler::Impl {
  struct Device;
  struct Model;
  struct ModelOnDevice;

  struct Instance;

  // Instances by a time. They do not move while their model exists.
  using Listed = std::set<std::pair<NanoTime, Instance*>>;

  struct Instance {
    ModelOnDevice* on_device = nullptr;
    bool holds_cores = false;
    NanoTime started;
    int64_t bucket = 0;
    int64_t size = 0;
    // Expected time of the pass, which the model was charged for.
    Nanos charged = {};
    // If the pass is a retry: the instance that failed before, and when. Otherwise -1.
    int retry_of = -1;
    NanoTime failed_at;
    InstanceHealth health;
    // Until then it takes no work although it computes nothing; the epoch if it may, Never() if its device is
    // lost.
    NanoTime paused_until;
    // Its node of `holders` or `pauses` while it is in neither, so that listing it allocates nothing. It is
    // never in both: only passes hold cores.
    Listed::node_type node;
  };

  // A batch that failed and waits for an instance other than the one where it failed.
  struct Retry {
    ModelQueue::Tasks tasks;
    int64_t bucket = 0;
    Nanos expected = {};
    int failed_on = 0;
    NanoTime failed_at;
  };

  // A model's instances on one device, and the device time that they used.
  struct ModelOnDevice {
    Model* model = nullptr;
    Device* device = nullptr;
    int instances = 0;
    std::vector<int> idle = {};
    // Time of one core that was used, divided by the model's weight.
    Nanos used = {};
    // Its index in Device::offers; -1 if the model could not start a pass here.
    int offer = -1;
  };

  // Whether and when a batch of the model is due, as computed at `taken`. Changes of the model invalidate it;
  // deadlines that pass do not, so it is computed again after some milliseconds.
  struct DueEstimate {
    // True if a batch is due.
    bool found = false;
    ModelQueue::Due due = {};
    // When a batch will be due, if none is.
    NanoTime due_at = NanoTime::Never();
    NanoTime taken;
  };

  struct Model {
    Model(Scheduler::ModelId number, const BatcherOptions& options) : id(number), queue(options) {}

    double threads() const { return queue.options().threads; }
    double weight() const { return queue.options().weight; }
    // True if it has tasks and an idle instance.
    bool CanStart() const { return !queue.empty() && idle > 0; }
    // True if it has neither tasks nor running passes.
    bool IsIdle() const { return queue.empty() && retries.empty() && idle + paused == instances.size(); }
    // See Scheduler::queued.
    int64_t queued() const { return queue.queued() + retried; }
    // Number of instances in service.
    size_t in_service() const { return instances.size() - aside; }

    const Scheduler::ModelId id;
    ModelQueue queue;
    std::vector<Instance> instances;
    // One for each device on which it has instances.
    std::vector<std::unique_ptr<ModelOnDevice>> devices;
    // Number of idle instances, over all devices.
    size_t idle = 0;
    // Number of instances that are set aside, and of those of them that are not to be probed yet.
    size_t aside = 0;
    size_t paused = 0;
    std::list<Retry> retries;
    // Number of items in `retries`.
    int64_t retried = 0;
    // What Scheduler::TakeChanges will return.
    Changes changes;
    bool closed = false;
    // Sum over its running passes of their expected ends, each as the span since the epoch.
    Nanos ends;
    ModelGauges gauges;
    // !IsIdle() as the devices' sums have it (Impl::Track).
    bool active = false;
    DueEstimate due_estimate;
    // True if it is in `changed`.
    bool changed = false;
    // Its place in `by_estimate_age`, while it wants to start a batch.
    std::optional<std::list<Model*>::iterator> age_place;
  };

  // A model that has tasks and an idle instance on a device. Kept in one array, because each choice reads all
  // offers on a device.
  struct Offer {
    ModelOnDevice* on_device = nullptr;
    // ModelOnDevice::used.
    Nanos used = {};
    // DueEstimate::due.latest_start; meaningless unless `due`.
    NanoTime latest_start = {};
    double threads = 1;
    Scheduler::ModelId model = 0;
    // DueEstimate::found.
    bool due = false;
  };

  struct Device {
    // Number of cores held by running passes.
    double held = 0;
    // Number of models there that do not rest, and the sum of their weights.
    int active_models = 0;
    double active_weight = 0;
    // ModelOnDevice::used of the model that is furthest behind its share; new models start there.
    Nanos served;
    // Longest recent pass.
    Nanos longest;
    // In no particular order.
    std::vector<Offer> offers = {};
    // Sum of Offer::threads, and number of offers that are due.
    double wanted_cores = 0;
    int due = 0;
    // True if several models together need more cores, with one pass each, than there are. Then no batch
    // waits for more items, because there is always another one to compute.
    bool contended = false;
  };

  // How far a model may exceed its share to meet a deadline, in multiples of the longest recent pass on the
  // device. Also bounds the credit of a model that was idle.
  static constexpr double kMaxCreditPasses = 2;

  explicit Impl(const SchedulerOptions& scheduler_options) : options(scheduler_options) {}

  // Updates the indices after the model's queue or instances have changed; its estimate is computed anew
  // before the next choice. Every change of a model ends with a call of it, also one that throws: otherwise
  // batches are chosen that no longer exist. Allocates nothing.
  void Track(Model& model);
  // Number of the model's instances that can compute concurrently, given the other models' load; possibly a
  // fraction.
  double UsableInstances(const Model& model) const;
  // Expected time until one of the model's instances is idle.
  static Nanos ExpectedWait(const Model& model, NanoTime now);
  // Counts what the model's newest requests need.
  void CountDemand(Model& model);
  // Gives the instance's cores back, if it still holds them.
  void ReleaseCores(Instance& instance);
  // Releases the cores of passes that have run longer than kMaxHold.
  void ReleaseCoresOfLongPasses(NanoTime now);
  static void List(Listed& listed, NanoTime at, Instance& instance);
  // REQUIRES: the instance is listed with this time.
  static void Unlist(Listed& listed, NanoTime at, Instance& instance);
  // Changes ModelOnDevice::used.
  static void Use(ModelOnDevice& on_device, Nanos used);
  // Returns the model whose batch starts next, and where, by a fresh estimate; null if none may start.
  // Sets `next_wake`.
  ModelOnDevice* Choose(NanoTime now, std::vector<Dropped>* dropped);
  // Starts a batch on one of the device's idle instances.
  Batch Start(ModelOnDevice& on_device, std::vector<int>::iterator idle, int64_t bucket, Nanos cost,
              ModelQueue::Tasks tasks, NanoTime now);

  // The functions below are in scheduler_failures.cc.

  // What Finished and Failed have in common: accounts for the pass of an instance, which becomes neither idle
  // nor paused. `took` as for ModelQueue::Learn.
  void EndPass(Model& model, Instance& instance, std::optional<Nanos> took, NanoTime now);
  void MakeIdle(Model& model, Instance& instance);
  // Judges the instances by a pass that computed items.
  void CountSuccess(Model& model, Instance& instance, NanoTime now);
  // See Scheduler::Failed. The instance becomes idle or paused.
  bool Fail(Model& model, Instance& instance, ModelQueue::Tasks* tasks, bool lost, NanoTime now);
  // Makes instances idle whose pauses are over.
  void EndPauses(NanoTime now);
  // Returns the next retry that can start, or nullopt.
  std::optional<Batch> NextRetry(NanoTime now, std::vector<Dropped>* dropped);
  // Drops retries that are cancelled, late, or without another instance in service.
  void SweepRetries(Model& model, NanoTime now, std::vector<Dropped>* dropped);
  // Forgets pauses and retries, whose tasks are added to `left`.
  void ForgetFailures(Model& model, ModelQueue::Tasks* left);
  // Removes a model that rests.
  void Remove(Model& model);

  const SchedulerOptions options;
  // By id; null for a removed model.
  std::vector<std::unique_ptr<Model>> models;
  std::map<int, Device> devices;
  // Running passes that hold cores, by their start.
  Listed holders;
  NanoTime next_wake = NanoTime::Never();
  // What Scheduler::TakeDemand will return.
  Demand demand;
  // Instances that take no work for a while, by when that ends.
  Listed pauses;
  // Models with retries.
  std::vector<Model*> retrying;
  // Models that need a new estimate before the next choice.
  std::vector<Model*> changed;

 private:
  bool HasCores(const Device& device, double threads) const {
    return device.held == 0 || device.held + threads <= options.cores;
  }
  void TrackIndices(Model& model);
  void TrackOffer(ModelOnDevice& on_device);
  static void MarkDue(ModelOnDevice& on_device, const DueEstimate& estimate);
  // Updates Device::contended.
  void Contend(Device& device);
  // The next choice begins with a new estimate of the model.
  void EstimateLater(Model& model);
  void EstimateNow(Model& model, NanoTime now, std::vector<Dropped>* dropped);
  // Renews the estimates of models that changed, whose batch is due now, or whose estimate is too old.
  void RenewEstimates(NanoTime now, std::vector<Dropped>* dropped);
  void ForgetEstimate(Model& model);
  void Pause(Instance& instance, NanoTime until);
  void SetAside(Model& model, Instance& instance);
  // True if a batch that failed on `failed` should be tried on `other`: another instance in service, on
  // another device if the model has one in service there.
  static bool MayRetryOn(const Model& model, const Instance& failed, const Instance& other);
  static bool HasRetryInstance(const Model& model, const Instance& failed);
  // Returns the offer that starts next on `device`, or null if none may start.
  const Offer* ChooseAt(Device& device, NanoTime now);

  // Models without a due batch, by DueEstimate::due_at.
  absl::btree_set<std::pair<NanoTime, Scheduler::ModelId>> waiting;
  // The models that want to start a batch, the one with the oldest estimate first.
  std::list<Model*> by_estimate_age;
};

}  // namespace saccade::server
