// The policies that the benchmark compares. Saccade has one configuration for all experiments; each peer's
// single parameter is tuned for each experiment.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/batching/batcher_options.h"
#include "server/simulation/bench/experiment.h"

namespace saccade::server::simulation {

// Saccade's configuration in all experiments: max_queue_delay is infinite, so only the deadlines and the
// learned latency decide how long a batch waits.
BatcherOptions UntunedOptions();

// Saccade on a device with one core per instance.
PolicyFactory SaccadePolicy();
// Saccade on a device with `cores` cores and weighted models.
PolicyFactory WeightedPolicy(int cores, std::vector<double> weights);

PolicyFactory EagerCandidate();
PolicyFactory TritonCandidate(absl::Duration max_queue_delay);
PolicyFactory ServingCandidate(absl::Duration batch_timeout);

// The peer's delay with the largest goodput, found by trial.
struct Tuned {
  double goodput = 0;
  absl::Duration delay;
};
Tuned TuneTriton(const Experiment& experiment, double in_time = 0.99);
Tuned TuneServing(const Experiment& experiment, double in_time = 0.99);

}  // namespace saccade::server::simulation
