#include "server/simulation/bench/curve.h"

#include "absl/strings/str_format.h"
#include "server/simulation/bench/candidates.h"

namespace saccade::server::simulation {
namespace {

PolicyFactory PolicyOf(const CurveOptions& options) {
  const absl::Duration delay = absl::Milliseconds(options.delay_ms);
  if (options.policy == "eager") return EagerCandidate();
  if (options.policy == "triton") return TritonCandidate(delay);
  if (options.policy == "serving") return ServingCandidate(delay);
  return SaccadePolicy();
}

Experiment ExperimentOf(const CurveOptions& options) {
  const LinearLatency latency = {.alpha = FromMilliseconds(options.alpha_ms),
                                 .beta = FromMilliseconds(options.beta_ms)};
  Experiment experiment;
  experiment.models = {
      {.instances = options.instances, .latency = latency, .shapes = EqualAreas(options.buckets)}};
  const auto equal = std::vector<double>(options.buckets, 1);
  experiment.streams = {{.rate = 1,
                         .cv = options.cv,
                         .buckets = options.zipf ? ZipfWeights(options.buckets) : equal,
                         .clients = options.clients,
                         .deadline = FromMilliseconds(options.deadline_ms)}};
  experiment.jitter = options.jitter;
  experiment.requests = options.requests;
  experiment.seeds = options.seeds;
  return experiment;
}

}  // namespace

std::string Curve(const CurveOptions& options) {
  const Experiment experiment = ExperimentOf(options);
  const PolicyFactory policy = PolicyOf(options);
  std::vector<double> rates = options.rates;
  if (rates.empty()) rates = {Goodput(experiment, policy)};
  std::string text = absl::StrFormat("%10s %9s %9s %9s %9s %10s %9s %9s\n", "rate", "in time", "late",
                                     "refused", "shed", "goodput", "p50 ms", "fairness");
  for (const double rate : rates) {
    const Figures figures = Measure(experiment, policy, rate);
    const auto percent = [&](Outcome outcome) { return 100 * figures.tally.Share(outcome); };
    absl::StrAppendFormat(&text, "%10.0f %8.2f%% %8.2f%% %8.2f%% %8.2f%% %10.0f %9.2f %9.3f\n", rate,
                          percent(Outcome::kInTime), percent(Outcome::kLate), percent(Outcome::kRefused),
                          percent(Outcome::kShed), figures.goodput, ToMilliseconds(figures.p50),
                          figures.fairness);
  }
  return text;
}

}  // namespace saccade::server::simulation
