// The catalog's thread on virtual time: the daemon's LoadQueue, and its rules for what is loaded at the same
// time and what is unloaded, with loads that take a while, fail now and then, and read nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "server/catalog/load_plan.h"
#include "server/catalog/load_queue.h"
#include "server/simulation/faults/group_policy.h"
#include "server/simulation/faults/scenario.h"
#include "server/simulation/model_loader.h"
#include "server/simulation/random.h"
#include "server/simulation/virtual_clock.h"

namespace saccade::server::simulation {

class VirtualCatalog final : public ModelLoader {
 public:
  // What the catalog does to the models and to the simulation.
  struct Hooks {
    // Calls the function at that time.
    std::function<void(Nanos, std::function<void(Nanos)>)> at;
    // Stops a model, and loads it after `is_freed`.
    std::function<void(int)> close;
    std::function<bool(int)> is_freed;
    std::function<void(int)> load;
    // When a pass of the model last began.
    std::function<Nanos(int)> last_pass;
    // Number of passes that threads which brought requests have begun.
    std::function<int64_t()> tiny;
    // An invariant does not hold.
    std::function<void(const std::string&)> violated;
  };

  // At first no model is loaded. `clock` must outlive the object.
  VirtualCatalog(const OnDemand& options, Defect defect, uint64_t seed, VirtualClock* clock, Hooks hooks);

  bool IsLoaded(int model) const override { return models_[model].is_loaded; }
  void Await(const SimTask& task, Resume resume) override;
  void Sweep() override;

  // From now on no load fails, and all models are loaded and stay so, without a bound of their memory.
  void Heal();
  // Rejects requests that wait, and ends the thread.
  void Close();

  int64_t loads() const { return loads_; }

 private:
  struct Model {
    std::string name;
    bool is_loaded = false;
    Nanos loaded_at = {};
  };
  struct Waiting {
    Nanos deadline = kNever;
    Nanos since = {};
    std::shared_ptr<const Cancellation> cancellation;
  };

  Nanos Now() { return ToNanos(clock_->Now()); }
  Nanos LastUsed(int model) const;
  int IndexOf(const std::string& name) const { return std::stoi(name); }
  std::vector<LoadedModel> Loaded(int except = -1) const;
  int64_t Held() const;
  int64_t MaxBytes() const { return healed_ ? 0 : options_.max_bytes; }

  // Lets the thread make a turn at `when`.
  void WakeAt(Nanos when);
  // Unloads what is idle, and begins to load what is wanted, unless a load runs on this thread.
  void Turn();
  void UnloadIdle();
  void LoadWanted();
  // Whether the model's load is measured. The catalog's thread then does nothing else.
  bool IsAlone(int model) const;
  bool ThreadLoads() const;
  absl::StatusOr<LoadPlan> Plan(int model);
  void UnloadFor(int model, const std::vector<std::string>& unload);
  void Unload(int model);
  void BeginLoad(int model, bool is_wanted);
  void EndLoad(int model, bool is_wanted, Nanos began);
  // Adds violations of what must hold when the model's load begins.
  void CheckBegin(int model, bool alone);

  const OnDemand options_;
  const Defect defect_;
  VirtualClock* const clock_;
  const Hooks hooks_;
  Random random_;
  LoadQueue queue_;
  std::vector<Model> models_;
  // By request.
  std::map<int64_t, Waiting> waiting_;
  RunningLoads running_;
  // Those that run, and whether each is alone: noted apart from `running_`, which decides.
  std::map<int, bool> loading_;
  // The model that is loaded next, which may have to wait for others.
  std::optional<int> next_;
  // Kinds that were measured.
  std::set<int> measured_;
  bool healed_ = false;
  bool closed_ = false;
  // The earliest turn that is planned.
  Nanos turn_at_ = kNever;
  int64_t loads_ = 0;
};

}  // namespace saccade::server::simulation
