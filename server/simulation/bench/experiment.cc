#include "server/simulation/bench/experiment.h"

#include <algorithm>
#include <cmath>

#include "server/simulation/bounds.h"
#include "server/simulation/online_policy.h"

namespace saccade::server::simulation {
namespace {

Simulation::Options OptionsOf(const Experiment& experiment, double rate, int seed) {
  Simulation::Options options;
  options.streams = experiment.streams;
  for (StreamOptions& stream : options.streams) stream.rate *= rate;
  options.until = experiment.until(rate);
  options.seed = static_cast<uint64_t>(seed);
  options.ledger = {.from = experiment.warm_up(), .to = options.until, .slot = {}};
  return options;
}

// The largest rate at which `sustained` is true, by bisection, to a thousandth of the device's limit.
double LargestRate(const Experiment& experiment, const std::function<bool(double)>& sustained) {
  double largest = 0;
  double min = 0;
  for (const ModelOptions& model : experiment.models) {
    largest += model.instances * 1e9 / model.latency.beta.count();
  }
  for (int step = 0; step < 11; ++step) {
    const double rate = (min + largest) / 2;
    (sustained(rate) ? min : largest) = rate;
  }
  return min;
}

}  // namespace

Nanos Experiment::warm_up() const {
  Nanos longest;
  for (const StreamOptions& stream : streams) longest = std::max(longest, stream.deadline);
  return 10 * longest;
}

Nanos Experiment::until(double rate) const {
  const Nanos span = FromSeconds(static_cast<double>(requests) / rate);
  return warm_up() + std::max(span, at_least);
}

double Figures::late() const {
  const int64_t computed = tally[Outcome::kInTime] + tally[Outcome::kLate];
  return computed == 0 ? 0 : static_cast<double>(tally[Outcome::kLate]) / static_cast<double>(computed);
}

Figures Measure(const Experiment& experiment, const PolicyFactory& policy, double rate) {
  Figures figures;
  figures.streams.resize(experiment.streams.size());
  figures.busy.resize(experiment.models.size());
  for (int seed = 1; seed <= experiment.seeds; ++seed) {
    SimDevices device(experiment.models, experiment.jitter, static_cast<uint64_t>(seed));
    Simulation simulation(OptionsOf(experiment, rate, seed), &device, policy(experiment.models));
    simulation.Run();
    const Ledger& ledger = simulation.ledger();
    figures.tally.Add(ledger.all());
    for (size_t i = 0; i < ledger.by_stream().size(); ++i) figures.streams[i].Add(ledger.by_stream()[i]);
    for (size_t i = 0; i < figures.busy.size(); ++i) {
      figures.busy[i] += simulation.busy(static_cast<int>(i)).count();
    }
    figures.goodput += ledger.goodput() / experiment.seeds;
    figures.fairness += ledger.fairness() / experiment.seeds;
    figures.p50 += (ledger.latency().Percentile(0.5) / experiment.seeds).Whole();
    figures.mistakes += simulation.mistakes().total();
  }
  double busy = 0;
  for (const double model : figures.busy) busy += model;
  for (double& model : figures.busy) model /= busy;
  return figures;
}

double Goodput(const Experiment& experiment, const PolicyFactory& policy, double in_time) {
  return LargestRate(experiment, [&](double rate) {
    return Measure(experiment, policy, rate).tally.Share(Outcome::kInTime) >= in_time;
  });
}

double HindsightGoodput(const Experiment& experiment, double in_time) {
  const auto sustained = [&](double rate) {
    StreamOptions options = experiment.streams.front();
    options.rate *= rate;
    std::vector<std::vector<Nanos>> runs;
    int64_t requests = 0;
    for (int seed = 1; seed <= experiment.seeds; ++seed) {
      Stream stream(options, StreamSeed(static_cast<uint64_t>(seed), 0));
      std::vector<Nanos>& arrivals = runs.emplace_back();
      for (Arrival next = stream.Next(); next.at < experiment.until(rate); next = stream.Next()) {
        if (next.at >= experiment.warm_up()) arrivals.push_back(next.at);
      }
      requests += static_cast<int64_t>(arrivals.size());
    }
    auto may_miss = static_cast<int64_t>(std::floor((1 - in_time) * static_cast<double>(requests) + 1e-9));
    for (const auto& arrivals : runs) {
      may_miss -= FewestMissed(experiment.models.front().latency, arrivals, options.deadline, kMaxBatchSize,
                               may_miss);
      if (may_miss < 0) return false;
    }
    return true;
  };
  return LargestRate(experiment, sustained);
}

double OnlineGoodput(const Experiment& experiment, double in_time) {
  const StreamOptions& stream = experiment.streams.front();
  const OnlinePlan::Options options = {.latency = experiment.models.front().latency,
                                       .deadline = stream.deadline,
                                       .max_batch_size = kMaxBatchSize};
  return LargestRate(experiment, [&](double rate) {
    const double per_slot = rate * (options.deadline / options.slots).count() * 1e-9;
    const auto plan = std::make_shared<const OnlinePlan>(options, ArrivalsOf(per_slot, stream.cv));
    const auto policy = [&](const std::vector<ModelOptions>& /*models*/) {
      return std::make_unique<OnlinePolicy>(plan);
    };
    return Measure(experiment, policy, rate).tally.Share(Outcome::kInTime) >= in_time;
  });
}

}  // namespace saccade::server::simulation
