// The scenario of a seed: models, their options, the workload, and which faults happen when.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/admission/admission.h"
#include "server/batching/scheduler.h"
#include "server/simulation/faults/faulty_devices.h"
#include "server/simulation/sim_devices.h"
#include "server/simulation/workload.h"

namespace saccade::server::simulation {

// What a scenario may contain. Leaving out one feature changes nothing else, so that a failing seed can be
// shrunk to the features it needs.
enum class Feature : uint32_t {
  kErrors,
  kSlowPasses,
  kHangs,
  kReloads,
  kCancellations,
  kJitter,
  kSizes,
  kBursts,
  kPriorities,
  kTimeouts,
  kPreferred,
  kSharedCores,
  kDevices,
  kBrokenInstances,
  kConsidered,
  kTinyPasses,
  kOnDemand,
  kParallelLoads,
};
inline constexpr int kFeatures = 18;

const char* NameOf(Feature feature);

class Features {
 public:
  bool has(Feature feature) const { return (left_out_ >> static_cast<uint32_t>(feature) & 1) == 0; }
  void LeaveOut(Feature feature) { left_out_ |= 1u << static_cast<uint32_t>(feature); }

 private:
  uint32_t left_out_ = 0;
};

struct Reload {
  int model = 0;
  Nanos at = {};
};

// Models that requests load, and that are unloaded when they are idle or others need their memory.
struct OnDemand {
  // Memory of each model, and the most that they may hold together.
  std::vector<int64_t> bytes = {};
  int64_t max_bytes = 0;
  // The mean time of a load, by model, and the probability that it fails.
  std::vector<Nanos> load_time = {};
  double load_error = 0;
  Nanos idle_unload = {};
  size_t max_waiting = 256;
  // The most loads at the same time.
  size_t max_loads = 1;
  // By model: its kind, whose first load is measured and therefore runs alone; kNoKind if each load does.
  static constexpr int kNoKind = -1;
  std::vector<int> kinds = {};
};

struct Scenario {
  std::vector<ModelOptions> models;
  std::vector<BatcherOptions> batchers;
  SchedulerOptions scheduler;
  AdmissionOptions admission;
  // By model: see GroupPolicy::Options.
  std::vector<bool> lends;
  double jitter = 0;
  DeviceFaults faults;
  std::vector<Reload> reloads;
  // There are no reloads then.
  std::optional<OnDemand> on_demand;
  // First the streams of the faulty period, then, from healing_streams_from on, one stream per model that
  // starts at healed_at.
  std::vector<StreamOptions> streams;
  size_t healing_streams_from = 0;
  // True if requests of a priority class are served strictly in order: each has one picture, and no queue
  // policy delays timed-out requests.
  bool plain_order = true;
  // Requests that arrive in the second half of [healed_at, drain_at) are expected to be served.
  Nanos healed_at = {};
  Nanos drain_at = {};

  bool AlwaysFits() const;
};

// Equal seeds and features give equal scenarios.
Scenario DrawScenario(uint64_t seed, const Features& features);

}  // namespace saccade::server::simulation
