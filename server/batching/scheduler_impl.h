// The state of a Scheduler and the choice of the next batch. Internal to scheduler.cc and scheduler_impl.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/btree_set.h"
#include "server/batching/model_queue.h"
#include "server/batching/nanos.h"
#include "server/batching/scheduler.h"

namespace saccade::server {

struct Scheduler::Impl {
  struct Device;
  struct Model;
  struct ModelOnDevice;

  struct Instance {
    ModelOnDevice* on_device = nullptr;
    bool holds_cores = false;
    NanoTime started;
    int64_t bucket = 0;
    int64_t size = 0;
    // Expected time of the pass, which the model was charged for.
    Nanos charged = {};
  };

  // A model's instances on one device, and the device time that they used.
  struct ModelOnDevice {
    Model* model = nullptr;
    Device* device = nullptr;
    int instances = 0;
    std::vector<int> idle = {};
    // Time of one core that was used, divided by the model's weight.
    Nanos used = {};
  };

  struct Model {
    Model(Scheduler::ModelId number, const BatcherOptions& options) : id(number), queue(options) {}

    double threads() const { return queue.options().threads; }
    double weight() const { return queue.options().weight; }
    // True if it has tasks and an idle instance.
    bool Wants() const { return !queue.empty() && idle > 0; }
    // True if it has neither tasks nor running passes.
    bool Rests() const { return queue.empty() && idle == instances.size(); }

    const Scheduler::ModelId id;
    ModelQueue queue;
    std::vector<Instance> instances;
    // One for each device on which it has instances.
    std::vector<std::unique_ptr<ModelOnDevice>> devices;
    // Number of idle instances, over all devices.
    size_t idle = 0;
    bool closed = false;
    // Sum over its running passes of their expected ends, each as the span since the epoch.
    Nanos ends;
    // Wants() and !Rests() as the scheduler's indices have them (Impl::Track).
    bool wants = false;
    bool active = false;
  };

  // A model with a due batch and an idle instance on a device.
  struct Candidate {
    ModelOnDevice* on_device = nullptr;
    ModelQueue::Due due = {};

    Model& model() const { return *on_device->model; }
    Nanos used() const { return on_device->used; }
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
    // While a batch is chosen: the number of models that could start one here, and the cores held or needed
    // for one pass of each.
    int wanting_models = 0;
    double wanted_cores = 0;
    // True if several models together need more cores, with one pass each, than there are. Then no batch
    // waits for more items, because there is always another one to compute.
    bool contended = false;
    // Candidates for the next batch, while one is chosen.
    std::vector<Candidate> candidates = {};
  };

  // A running pass that holds cores, by its start. Instances do not move while their model exists.
  using Holder = std::pair<NanoTime, Instance*>;

  // How far a model may exceed its share to meet a deadline, in multiples of the longest recent pass on the
  // device. Also bounds the credit of a model that was idle.
  static constexpr double kMaxCreditPasses = 2;

  explicit Impl(const SchedulerOptions& scheduler_options) : options(scheduler_options) {}

  // Updates the indices after the model's queue or instances have changed.
  void Track(Model& model);
  // Number of the model's instances that can compute concurrently, given the other models' load; possibly a
  // fraction.
  double UsableInstances(const Model& model) const;
  // Expected time until one of the model's instances is idle.
  static Nanos ExpectedWait(const Model& model, NanoTime now);
  // Gives the instance's cores back, if it still holds them.
  void ReleaseCores(Instance& instance);
  // Releases the cores of passes that have run longer than kMaxHold.
  void ReleaseCoresOfLongPasses(NanoTime now);
  bool HasCores(const Candidate& candidate) const {
    const double held = candidate.on_device->device->held;
    return held == 0 || held + candidate.model().threads() <= options.cores;
  }
  void FindContended();
  // Collects for each device the models with a due batch and an idle instance there.
  void FindCandidates(NanoTime now, std::vector<Dropped>* dropped);
  // Returns the model that starts next on `device`, or null if none may start.
  const Candidate* ChooseAt(Device& device, NanoTime now);
  std::optional<Candidate> Choose(NanoTime now, std::vector<Dropped>* dropped);
  Batch Start(const Candidate& candidate, ModelQueue::Tasks tasks, NanoTime now);

  const SchedulerOptions options;
  // By id; null for a removed model.
  std::vector<std::unique_ptr<Model>> models;
  // The models that want to start a batch, in the order of their ids.
  std::vector<Model*> wanting;
  std::map<int, Device> devices;
  // The longest-running first.
  absl::btree_set<Holder> holders;
  NanoTime next_wake = NanoTime::Never();
};

}  // namespace saccade::server
