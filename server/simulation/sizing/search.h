// Finds the smallest configuration that holds, and what breaks first when the rate grows.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/simulation/sizing/estimate.h"

namespace saccade::server::simulation {

struct Limits {
  int max_replicas = 100;
  // Maximum number of items that one replica can hold while they wait.
  int64_t max_held_items = 1 << 20;
};

struct Found {
  // Index of the chosen MeasuredModel.
  size_t model = 0;
  Configuration configuration;
  Estimate estimate;
};

// The queue bound with which a request that still finds room is computed in time: what the instances compute
// within LatencyGoal::p99, and at least one full batch. At most `max_held_items`.
int64_t QueueBound(const MeasuredModel& model, const Configuration& configuration, const LatencyGoal& goal,
                   const Limits& limits);

// Mean number of cores that the passes and the decoding of one replica keep busy.
double CoresUsed(const MeasuredModel& model, const Traffic& traffic, const Configuration& configuration,
                 const Estimate& estimate);

// Returns the configuration that holds with the fewest replicas, then the fewest cores, then the shortest
// p99. `models` are measurements of the same model, with other precisions or numbers of threads.
// FAILED_PRECONDITION says why none holds: a pass takes longer than the goal, or the replicas do not suffice.
// REQUIRES: `models` is not empty, and all have as many buckets as Traffic::mix.
absl::StatusOr<Found> FindSmallest(const std::vector<MeasuredModel>& models, const Traffic& traffic,
                                   const LatencyGoal& goal, const Limits& limits = {},
                                   const EstimateOptions& options = {});

struct Breaking {
  // "cores", "queue", "deadline", "memory" or "bursts".
  std::string what;
  // The largest rate that holds and the smallest that does not, a few percent apart.
  double holds = 0;
  double breaks = 0;
  // At `holds` and at `breaks`.
  Estimate before;
  Estimate after;
};

// Raises the rate of a configuration that holds until it breaks.
Breaking FindBreaking(const MeasuredModel& model, const Traffic& traffic, const Configuration& configuration,
                      const LatencyGoal& goal, const Limits& limits = {},
                      const EstimateOptions& options = {});

}  // namespace saccade::server::simulation
