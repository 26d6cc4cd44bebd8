// A seed's world: models, their options, who asks, and what goes wrong when.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/admission/admission.h"
#include "server/batching/scheduler.h"
#include "server/simulation/device.h"
#include "server/simulation/faults/faulty_device.h"
#include "server/simulation/workload.h"

namespace saccade::server::simulation {

// What a seed may draw; each that is left out leaves everything else as it was, so that a failing seed can be
// shrunk to what it takes.
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
  kPlaces,
};
inline constexpr int kFeatures = 13;

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
  Instant at = 0;
};

struct Scenario {
  std::vector<ModelOptions> models;
  std::vector<BatcherOptions> batchers;
  SchedulerOptions scheduler;
  AdmissionOptions admission;
  double jitter = 0;
  DeviceFaults faults;
  std::vector<Reload> reloads;
  // First those of the faulty time, then those that come when all has healed, one for each model.
  std::vector<StreamOptions> streams;
  size_t healing_streams_from = 0;
  // Whether a request stays in order among its like: all have one picture, none is put behind the others.
  bool plain_order = true;
  // Requests of the second half of the time between are to be served.
  Instant healed_at = 0;
  Instant drain_at = 0;

  bool AlwaysFits() const;
};

// The same for the same seed and features.
Scenario DrawScenario(uint64_t seed, const Features& features);

}  // namespace saccade::server::simulation
