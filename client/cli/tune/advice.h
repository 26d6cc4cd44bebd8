// What `saccade tune` writes: a part of config.pbtxt, Helm values, a plot, and a sentence.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "client/cli/tune/measurement.h"
#include "server/simulation/sizing/search.h"

namespace saccade::client {

// Memory that the chart's own bounds let decoded items take (config.max-decoded-bytes of its values).
inline constexpr int64_t kMaxDecodedBytes = 805306368;

struct Advice {
  Measurement measurement;
  // True if it was chosen among measurements of several precisions.
  bool many_precisions = false;
  server::simulation::Traffic traffic;
  server::simulation::LatencyGoal goal;
  server::simulation::Found found;
  server::simulation::Breaking breaking;
  // By rate: the same configuration under less and more load.
  std::vector<std::pair<double, server::simulation::Estimate>> curve;
};

// What one replica requests from Kubernetes.
struct Resources {
  int cores = 1;
  int64_t memory_bytes = 0;
  // Target of the demand metrics of the HPA and of KEDA's triggers, in thousandths.
  int target = 700;
};
Resources ResourcesOf(const Advice& advice);

// The maximum number of items that fit in kMaxDecodedBytes; no bound if the items' size is not known.
int64_t MaxHeldItems(const Measurement& measurement);

// The fields of config.pbtxt that the advice decides.
std::string ConfigText(const Advice& advice);
// Values for deploy/helm/saccade.
std::string ValuesText(const Advice& advice);
// SVG: p99 in milliseconds and goodput, over the rate.
std::string PlotText(const Advice& advice);

// Says what breaks first, and at which rate.
std::string BreakingText(const Advice& advice);
// What the reader has to know of the measurement: what it does not cover.
std::vector<std::string> Notes(const Advice& advice);

}  // namespace saccade::client
