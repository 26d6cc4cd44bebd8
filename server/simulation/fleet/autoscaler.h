// Kubernetes' HorizontalPodAutoscaler, on the metric of the manifests.
#pragma once

#include <deque>

#include "server/simulation/fleet/fleet.h"

namespace saccade::server::simulation {

struct AutoscalerOptions {
  enum class Metric {
    // Processor time that the pods use.
    kUtilization,
    // Time that the requests ask for, rejected ones included (saccade_demand).
    kDemand,
  };
  Metric metric = Metric::kDemand;
  double target = 0.7;
  int min_replicas = 3;
  int max_replicas = 2000;
  // How often it decides, and over how long the metric is averaged (rate(…[1m])).
  Nanos every = 15 * kSecond;
  int window = 4;
  // No change within this share of the target.
  double tolerance = 0.1;
  // At most so many times the replicas after one decision.
  double max_growth = 4;
};

// Starts replicas; never ends any, because that is not what these scenarios are about. Must not outlive the
// fleet.
class Autoscaler {
 public:
  Autoscaler(const AutoscalerOptions& options, Fleet* fleet);

  // Decides from now on, until the run ends. Call it once.
  void Begin() { Decide({}); }

  // What it would want now. For tests.
  static int Desired(const AutoscalerOptions& options, int replicas, double metric);

 private:
  void Decide(Nanos now);

  const AutoscalerOptions options_;
  Fleet* const fleet_;
  std::deque<double> measured_;
};

}  // namespace saccade::server::simulation
