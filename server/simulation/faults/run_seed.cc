#include "server/simulation/faults/run_seed.h"

#include <functional>
#include <memory>

#include "server/simulation/faults/invariants.h"
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
                                         .sweep_every = kSweepEvery};
    simulation_ = std::make_unique<Simulation>(options, &device_, std::move(policy), admission_.get(),
                                               invariants_.get());
  }

  SeedResult Run() {
    for (const Reload& reload : scenario_.reloads) {
      simulation_->At(reload.at, [this, reload](Nanos now) {
        policy_->Close(reload.model);
        invariants_->Closed(reload.model);
        ReloadWhenIdle(reload.model, now);
      });
    }
    simulation_->At(scenario_.drain_at, [this](Nanos) {
      admission_->StartDraining();
      for (size_t i = 0; i < scenario_.models.size(); ++i) {
        policy_->Close(static_cast<int>(i));
        invariants_->Closed(static_cast<int>(i));
      }
    });
    simulation_->Run();
    invariants_->CheckEnd(simulation_->requests(), simulation_->mistakes(), admission_->inflight());
    return {.trace_hash = simulation_->trace_hash(),
            .requests = simulation_->requests(),
            .tally = simulation_->ledger().all(),
            .tiny = policy_->tiny(),
            .considered = invariants_->considered(),
            .violations = invariants_->violations()};
  }

 private:
  void ReloadWhenIdle(int model, Nanos now) {
    // A tiny batch may be computed when the instances' threads have ended.
    if (policy_->Ended(model) && invariants_->Idle(model)) {
      policy_->Reload(model);
      invariants_->Reopened(model);
      return;
    }
    simulation_->At(now + kReloadEvery, [this, model](Nanos later) { ReloadWhenIdle(model, later); });
  }

  const Scenario scenario_;
  FaultyDevices device_;
  VirtualClock clock_;
  const std::unique_ptr<Admission> admission_;
  std::unique_ptr<Invariants> invariants_;
  std::unique_ptr<Simulation> simulation_;
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
