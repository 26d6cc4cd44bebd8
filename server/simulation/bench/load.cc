// Low load and tenfold overload.
#include "absl/strings/str_cat.h"
#include "server/simulation/bench/candidates.h"
#include "server/simulation/bench/sections.h"
#include "server/simulation/bounds.h"

namespace saccade::server::simulation {
namespace {

void AddLowLoad(const BenchOptions& options, Report& report, int instances, int buckets) {
  const Experiment experiment = BasicExperiment(options, 0.5, 100, instances, buckets);
  const Nanos alone = experiment.models.front().Latency(0, 1);
  const double rate = 0.1 * instances * 1e9 / alone.count();
  const Figures figures = Measure(experiment, SaccadePolicy(), rate);
  report.AtMost(absl::StrCat("a tenth busy, N=", instances, ", K=", buckets, ": p50"),
                ToMilliseconds(figures.p50), 1.05 * ToMilliseconds(alone) + 0.2, 2, " ms");
}

// One client that sends its next request a tenth of a millisecond after each answer, so that its instance is
// always busy. Nothing is gained by waiting.
void AddLoneClient(const BenchOptions& options, Report& report, double alpha_ms, double jitter) {
  Experiment experiment = BasicExperiment(options, kBetaMs, kDeadlineMs);
  LinearLatency& latency = experiment.models.front().latency;
  latency = {.alpha = FromMilliseconds(alpha_ms), .beta = FromMilliseconds(5.5 - alpha_ms)};
  experiment.streams.front().one_at_a_time = true;
  experiment.jitter = jitter;
  const Nanos alone = experiment.models.front().Latency(0, 1);
  const Figures figures = Measure(experiment, SaccadePolicy(), /*rate=*/10'000);
  report.AtMost(absl::StrCat("one client, L(b) = ", alpha_ms, " ms + ", 5.5 - alpha_ms, " ms b, ",
                             100 * jitter, " % jitter: p50"),
                ToMilliseconds(figures.p50), 1.05 * ToMilliseconds(alone) + 0.2, 2, " ms");
}

void AddOverload(const BenchOptions& options, Report& report, int instances, int buckets, double factor,
                 double cv, double jitter) {
  Experiment experiment = BasicExperiment(options, 0.5, 100, instances, buckets);
  experiment.jitter = jitter;
  experiment.requests *= 5;
  StreamOptions& stream = experiment.streams.front();
  stream.cv = cv;
  stream.clients = 20;
  const LinearLatency latency = experiment.models.front().latency;
  const double rate = factor * ServeAllRate(latency, instances, buckets, stream.deadline, kMaxBatchSize);
  // Each bucket's batch fills at the bucket's own rate, as if each bucket had an equal part of the instances.
  const double bound = buckets * OverloadGoodput(latency, 1, rate / buckets, stream.deadline, kMaxBatchSize) *
                       instances / buckets;
  const std::string cell = absl::StrCat(factor, "x, N=", instances, ", K=", buckets,
                                        cv == 0 ? ", even" : ", Poisson", jitter > 0 ? ", 10 % jitter" : "");
  const auto against = [&](const std::string& who, const PolicyFactory& policy) {
    const Figures figures = Measure(experiment, policy, rate);
    report.Note(absl::StrCat(cell, ": ", who, " (late ", Rounded(100 * figures.late(), 1), " %)"),
                Rounded(figures.goodput / bound, 3));
  };
  const Figures ours = Measure(experiment, SaccadePolicy(), rate);
  // The bound assumes even arrivals and a device without jitter.
  if (cv == 0 && jitter == 0) {
    report.AtLeast(absl::StrCat(cell, ": of G^ (", Rounded(bound, 0), " /s)"), ours.goodput / bound, 0.95);
  } else {
    report.Note(absl::StrCat(cell, ": of G^ (", Rounded(bound, 0), " /s)"), Rounded(ours.goodput / bound, 3));
  }
  report.AtMost(absl::StrCat(cell, ": late, of what was computed"), 100 * ours.late(), 1, 2, " %");
  report.AtLeast(absl::StrCat(cell, ": Jain's index of 20 clients"), ours.fairness, 0.95);
  if (factor != 10) return;
  against("eager, of G^", EagerCandidate());
  against("Triton's, of G^", TritonCandidate(absl::ZeroDuration()));
  against("TensorFlow Serving's, of G^", ServingCandidate(absl::ZeroDuration()));
}

}  // namespace

void AddLoad(const BenchOptions& options, Report& report) {
  report.Section(
      "Little load, and far too much",
      "beta 0.5 ms, D 100 ms. A tenth busy: Poisson at a rate of which batches of one keep the "
      "instances busy for a "
      "tenth of the time. One client: it sends its next request 0.1 ms after each answer, on average. "
      "Overload: so many times G*, against G^, what a device without jitter "
      "answers in time of "
      "even arrivals when it need not answer all. Peers with their default delay of zero.");
  for (const int instances : {1, 4}) {
    for (const int buckets : {1, 4}) AddLowLoad(options, report, instances, buckets);
  }
  for (const double alpha_ms : {5.0, 0.5}) {
    for (const double jitter : {0.0, 0.1}) AddLoneClient(options, report, alpha_ms, jitter);
  }
  AddOverload(options, report, 1, 1, 2, 0, 0);
  AddOverload(options, report, 1, 1, 10, 0, 0);
  AddOverload(options, report, 4, 1, 10, 0, 0);
  AddOverload(options, report, 1, 4, 10, 0, 0);
  AddOverload(options, report, 4, 8, 10, 0, 0);
  AddOverload(options, report, 1, 1, 10, 1, 0.1);
  AddOverload(options, report, 4, 4, 10, 1, 0.1);
}

}  // namespace saccade::server::simulation
