// Whom the benchmark compares. Saccade's configuration is one for all experiments; the peers' one knob is
// tuned for each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/batching/batcher_options.h"
#include "server/simulation/bench/experiment.h"

namespace saccade::server::simulation {

// What Saccade is configured with throughout: it waits as long as the deadlines and what it knows of the
// latency say.
BatcherOptions UntunedOptions();

// On a device with a core for every instance.
PolicyFactory SaccadePolicy();
// On a device of `cores`, the models weighted.
PolicyFactory WeightedPolicy(int cores, std::vector<double> weights);

PolicyFactory EagerCandidate();
PolicyFactory TritonCandidate(absl::Duration max_queue_delay);
PolicyFactory ServingCandidate(absl::Duration batch_timeout);

// A peer with the delay that sustains most, found by trying.
struct Tuned {
  double goodput = 0;
  absl::Duration delay;
};
Tuned TuneTriton(const Experiment& experiment, double in_time = 0.99);
Tuned TuneServing(const Experiment& experiment, double in_time = 0.99);

}  // namespace saccade::server::simulation
