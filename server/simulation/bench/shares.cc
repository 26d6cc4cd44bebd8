// Checks that priorities and weights are honoured under overload.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/simulation/bench/candidates.h"
#include "server/simulation/bench/sections.h"
#include "server/simulation/bounds.h"

namespace saccade::server::simulation {
namespace {

void AddPriorities(const BenchOptions& options, Report& report, int instances) {
  Experiment experiment = BasicExperiment(options, kBetaMs, kDeadlineMs, instances);
  StreamOptions first = experiment.streams.front();
  first.rate = 1.0 / 6;
  first.priority = 1;
  StreamOptions second = experiment.streams.front();
  second.rate = 5.0 / 6;
  experiment.streams = {first, second};
  const double capacity = ServeAllRate(experiment.models.front().latency, instances, 1,
                                       FromMilliseconds(kDeadlineMs), kMaxBatchSize);
  const Figures figures = Measure(experiment, SaccadePolicy(), 3 * capacity);
  const std::string cell = absl::StrCat("priorities at 3x, N=", instances);
  report.AtLeast(absl::StrCat(cell, ": the first class (half of what can be served), in time"),
                 100 * figures.streams[0].Share(Outcome::kInTime), 95, 1, " %");
  // The bound is G*, not G^: a server that has to answer every request of a class cannot use batches as large
  // as one that may drop some.
  const double left = capacity - 0.5 * capacity;
  const double got = figures.goodput * static_cast<double>(figures.streams[1][Outcome::kInTime]) /
                     static_cast<double>(figures.tally[Outcome::kInTime]);
  report.AtLeast(absl::StrCat(cell, ": the second class, of what the first leaves of G*"), 100 * got / left,
                 95, 1, " %");
}

void AddWeights(const BenchOptions& options, Report& report, const std::vector<double>& weights, int cores,
                int instances) {
  const Experiment basic = BasicExperiment(options, kBetaMs, kDeadlineMs, instances);
  Experiment experiment = basic;
  // A pass takes up to a tenth of a second, so the shares only converge over many passes.
  experiment.requests *= 10;
  experiment.models.assign(weights.size(), basic.models.front());
  experiment.streams.clear();
  double sum = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    StreamOptions stream = basic.streams.front();
    stream.model = static_cast<int>(i);
    stream.rate = 1.0 / static_cast<double>(weights.size());
    experiment.streams.push_back(stream);
    sum += weights[i];
  }
  // Each model is offered more than the whole device can serve.
  const double rate =
      1.5 * static_cast<double>(weights.size()) *
      ServeAllRate(basic.models.front().latency, cores, 1, FromMilliseconds(kDeadlineMs), kMaxBatchSize);
  const Figures figures = Measure(experiment, WeightedPolicy(cores, weights), rate);
  double worst = 0;
  std::vector<std::string> shares;
  for (size_t i = 0; i < weights.size(); ++i) {
    worst = std::max(worst, std::abs(figures.busy[i] / (weights[i] / sum) - 1));
    shares.push_back(Rounded(figures.busy[i], 3));
  }
  report.AtMost(absl::StrCat("weights ", absl::StrJoin(weights, ":"), " on ", cores, " cores, ", instances,
                             " instances each: off by (", absl::StrJoin(shares, " "), ")"),
                100 * worst, 5, 1, " %");
}

}  // namespace

void AddShares(const BenchOptions& options, Report& report) {
  report.Section(
      "Priorities and weights",
      "Poisson, beta 0.5 ms, D 100 ms. Priorities: two classes offer three times what can be served, the "
      "first a "
      "half of it; the second may have what that leaves. Weights: every model offers more than the whole "
      "device "
      "can serve; a share is that of the time computed, and how far off it is counts from the share itself.");
  AddPriorities(options, report, 1);
  AddPriorities(options, report, 4);
  AddWeights(options, report, {1, 1}, 1, 1);
  AddWeights(options, report, {3, 1}, 1, 1);
  AddWeights(options, report, {5, 3, 1}, 1, 1);
  AddWeights(options, report, {3, 1}, 4, 4);
}

}  // namespace saccade::server::simulation
