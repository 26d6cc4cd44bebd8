#include "server/simulation/fleet/autoscaler.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace saccade::server::simulation {

Autoscaler::Autoscaler(const AutoscalerOptions& options, Fleet* fleet) : options_(options), fleet_(fleet) {}

int Autoscaler::Desired(const AutoscalerOptions& options, int replicas, double metric) {
  const double ratio = metric / options.target;
  if (std::abs(ratio - 1) <= options.tolerance) return replicas;
  const double wanted = std::min(std::ceil(replicas * ratio), replicas * options.max_growth);
  return static_cast<int>(std::clamp<double>(wanted, options.min_replicas, options.max_replicas));
}

void Autoscaler::Decide(Nanos now) {
  fleet_->At(now + options_.every, [this](Nanos later) { Decide(later); });
  if (now == Nanos()) return;
  double sum = 0;
  int ready = 0;
  for (int i = 0; i < fleet_->replicas(); ++i) {
    Replica& replica = fleet_->replica(i);
    if (replica.state != ReplicaState::kReady) continue;
    ++ready;
    sum += options_.metric == AutoscalerOptions::Metric::kDemand ? replica.TakeDemand(now)
                                                                 : replica.TakeUtilization(now);
  }
  if (ready == 0) return;
  measured_.push_back(sum / ready);
  if (static_cast<int>(measured_.size()) > options_.window) measured_.pop_front();
  const double mean =
      std::accumulate(measured_.begin(), measured_.end(), 0.0) / static_cast<double>(measured_.size());
  // The metric is that of the ready pods, as Kubernetes has it; those that start count as wanted.
  const int desired = Desired(options_, ready, mean);
  for (int more = desired - fleet_->Wanted(); more > 0; --more)
    fleet_->Start(Build{}, fleet_->options().start_up);
}

}  // namespace saccade::server::simulation
