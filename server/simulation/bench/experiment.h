// One workload on one device: a policy's figures at a given rate, and the largest rate that it sustains.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "server/simulation/simulation.h"

namespace saccade::server::simulation {

// The maximum batch size of all candidates, so large that it rarely matters.
inline constexpr int64_t kMaxBatchSize = 256;

using PolicyFactory = std::function<std::unique_ptr<Policy>(const std::vector<ModelOptions>&)>;

struct Experiment {
  std::vector<ModelOptions> models = {ModelOptions{}};
  // The streams' rates are shares of the offered rate.
  std::vector<StreamOptions> streams = {{.rate = 1}};
  // Standard deviation of a pass's time, relative to the time.
  double jitter = 0;
  // Requests in a run; more if these would take less than `at_least`.
  int64_t requests = 20'000;
  Nanos at_least = 5 * kSecond;
  int seeds = 2;

  // Requests that arrive before this time are not counted, because the policy still learns.
  Nanos warm_up() const;
  Nanos until(double rate) const;
};

// Figures over the runs of all seeds.
struct Figures {
  Tally tally;
  // Indexed by stream; the size is that of Experiment::streams.
  std::vector<Tally> streams;
  // By model: its share of the time that the instances of all models computed.
  std::vector<double> busy;
  // Requests in time, per second.
  double goodput = 0;
  double fairness = 0;
  Nanos p50 = {};
  int64_t mistakes = 0;

  // The share of the computed requests that were late.
  double late() const;
};

// `rate` is the number of requests per second over all streams.
Figures Measure(const Experiment& experiment, const PolicyFactory& policy, double rate);

// The largest rate at which at least a share of `in_time` is answered in time.
double Goodput(const Experiment& experiment, const PolicyFactory& policy, double in_time = 0.99);

// The same for the optimum in hindsight, which knows every arrival beforehand. REQUIRES: one stream, one
// model with one instance and one bucket.
double HindsightGoodput(const Experiment& experiment, double in_time = 0.99);

// The same for a policy that does not know the arrivals beforehand but their distribution (OnlinePlan).
// REQUIRES: as above, and requests of one item.
double OnlineGoodput(const Experiment& experiment, double in_time = 0.99);

}  // namespace saccade::server::simulation
