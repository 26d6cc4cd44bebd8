#include "server/simulation/faults/run_seed.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "server/simulation/faults/invariants.h"
#include "server/simulation/faults/virtual_catalog.h"
#include "server/simulation/simulation.h"

namespace saccade::server::simulation {
namespace {

// How often to check whether a model that is to be reloaded is idle.
constexpr Nanos kReloadEvery = 10 * kMillisecond;
// How long requests continue to arrive after the drain has begun.
constexpr Nanos kAfterDrain = 100 * kMillisecond;
// How often the daemon sweeps (lifecycle/daemon.cc).
constexpr Nanos kSweepEvery = 250 * kMillisecond;

class SeedRun {
 public:
  SeedRun(uint64_t seed, const Features& features, Defect defect)
      : scenario_(DrawScenario(seed, features)),
        device_(scenario_.models, scenario_.jitter, scenario_.faults, ~seed),
        admission_(*Admission::Create(scenario_.admission, &clock_)) {
    auto policy = std::make_unique<GroupPolicy>(GroupPolicy::Options{.scheduler = scenario_.scheduler,
                                                                     .batchers = scenario_.batchers,
                                                                     .models = scenario_.models,
                                                                     .lends = scenario_.lends,
                                                                     .seed = seed,
                                                                     .defect = defect},
                                                &clock_);
    policy_ = policy.get();
    invariants_ = std::make_unique<Invariants>(scenario_, policy_);
    const Simulation::Options options = {.streams = scenario_.streams,
                                         .until = scenario_.drain_at + kAfterDrain,
                                         .seed = seed,
                                         .clock = &clock_,
                                         .sweep_every = kSweepEvery,
                                         .loads = MakeCatalog(seed, defect)};
    simulation_ = std::make_unique<Simulation>(options, &device_, std::move(policy), admission_.get(),
                                               invariants_.get());
  }

  SeedResult Run() {
    if (catalog_ != nullptr) {
      simulation_->At({}, [this](Nanos) { CloseAll(); });
      simulation_->At(scenario_.faults.heals_at, [this](Nanos) { catalog_->Heal(); });
    }
    for (const Reload& reload : scenario_.reloads) {
      simulation_->At(reload.at, [this, reload](Nanos now) {
        Close(reload.model);
        ReloadWhenIdle(reload.model, now);
      });
    }
    simulation_->At(scenario_.drain_at, [this](Nanos) {
      admission_->StartDraining();
      if (catalog_ != nullptr) catalog_->Close();
      CloseAll();
    });
    simulation_->Run();
    invariants_->CheckEnd(simulation_->requests(), simulation_->mistakes(), admission_->inflight());
    return {.trace_hash = simulation_->trace_hash(),
            .requests = simulation_->requests(),
            .tally = simulation_->ledger().all(),
            .tiny = policy_->tiny(),
            .considered = invariants_->considered(),
            .loads = catalog_ == nullptr ? 0 : catalog_->loads(),
            .violations = invariants_->violations()};
  }

 private:
  // Null unless models are loaded on demand.
  ModelLoader* MakeCatalog(uint64_t seed, Defect defect) {
    if (!scenario_.on_demand) return nullptr;
    catalog_ = std::make_unique<VirtualCatalog>(
        *scenario_.on_demand, defect, seed, &clock_,
        VirtualCatalog::Hooks{
            .at = [this](Nanos when,
                         std::function<void(Nanos)> what) { simulation_->At(when, std::move(what)); },
            .close = [this](int model) { Close(model); },
            .is_freed = [this](int model) { return IsFreed(model); },
            .load = [this](int model) { Load(model); },
            .last_pass = [this](int model) { return invariants_->last_pass(model); },
            .tiny = [this] { return policy_->tiny(); },
            .violated = [this](const std::string& what) { invariants_->Add(ToNanos(clock_.Now()), what); }});
    return catalog_.get();
  }

  void Close(int model) {
    policy_->Close(model);
    invariants_->Closed(model);
  }

  void CloseAll() {
    for (size_t i = 0; i < scenario_.models.size(); ++i) Close(static_cast<int>(i));
  }

  // A tiny batch may be computed when the instances' threads have ended.
  bool IsFreed(int model) const { return policy_->Ended(model) && invariants_->Idle(model); }

  void Load(int model) {
    policy_->Reload(model);
    invariants_->Reopened(model);
  }

  void ReloadWhenIdle(int model, Nanos now) {
    if (IsFreed(model)) return Load(model);
    simulation_->At(now + kReloadEvery, [this, model](Nanos later) { ReloadWhenIdle(model, later); });
  }

  const Scenario scenario_;
  FaultyDevices device_;
  VirtualClock clock_;
  const std::unique_ptr<Admission> admission_;
  std::unique_ptr<Invariants> invariants_;
  std::unique_ptr<Simulation> simulation_;
  // Destroyed before the simulation, whose requests may wait in it.
  std::unique_ptr<VirtualCatalog> catalog_;
  // Owned by simulation_.
  GroupPolicy* policy_ = nullptr;
};

}  // namespace

SeedResult RunSeed(uint64_t seed, const Features& features, Defect defect) {
  return SeedRun(seed, features, defect).Run();
}

Features Shrink(uint64_t seed, Features features) {
  for (int i = 0; i < kFeatures; ++i) {
    const auto feature = static_cast<Feature>(i);
    if (!features.has(feature)) continue;
    Features fewer = features;
    fewer.LeaveOut(feature);
    if (!RunSeed(seed, fewer).violations.empty()) features = fewer;
  }
  return features;
}

}  // namespace saccade::server::simulation
