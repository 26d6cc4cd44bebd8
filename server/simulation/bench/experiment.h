// One workload on one device: what a policy makes of it at a rate, and the largest rate that it sustains.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "server/simulation/simulation.h"

namespace saccade::server::simulation {

// The largest batch, of all candidates; so large that it is no bound in most experiments.
inline constexpr int64_t kMaxBatchSize = 256;

using PolicyFactory = std::function<std::unique_ptr<Policy>(const std::vector<ModelOptions>&)>;

struct Experiment {
  std::vector<ModelOptions> models = {ModelOptions{}};
  // Their rates are shares of the offered one.
  std::vector<StreamOptions> streams = {{.rate = 1}};
  // Standard deviation of a pass, as a share of its time.
  double jitter = 0;
  // A run's requests, or more if they would not fill `at_least`.
  int64_t requests = 20'000;
  Instant at_least = 5 * kSecond;
  int seeds = 2;

  // Nothing is counted before, while the policy learns.
  Instant warm_up() const;
  Instant until(double rate) const;
};

// Of all seeds' runs together.
struct Figures {
  Tally tally;
  // By stream; as long as the experiment's.
  std::vector<Tally> streams;
  // A model's share of the time that all models' instances computed.
  std::vector<double> busy;
  // In time, a second.
  double goodput = 0;
  double fairness = 0;
  Instant p50 = 0;
  int64_t mistakes = 0;

  // Of what was computed.
  double late() const;
};

// `rate` is in requests a second, over all streams.
Figures Measure(const Experiment& experiment, const PolicyFactory& policy, double rate);

// The largest rate at which a share of at least `in_time` is answered in time.
double Goodput(const Experiment& experiment, const PolicyFactory& policy, double in_time = 0.99);

// The same of the optimum in hindsight, which knows every arrival beforehand. REQUIRES: one stream, one model
// of one instance and one bucket.
double HindsightGoodput(const Experiment& experiment, double in_time = 0.99);

}  // namespace saccade::server::simulation
