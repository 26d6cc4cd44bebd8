// How long it takes to recover from a burst.
#include "absl/strings/str_cat.h"
#include "server/simulation/bench/candidates.h"
#include "server/simulation/bench/sections.h"
#include "server/simulation/bounds.h"

namespace saccade::server::simulation {
namespace {

constexpr Nanos kDeadline = 100 * kMillisecond;
constexpr Nanos kEnd = 7 * kSecond;
constexpr Nanos kSlot = kDeadline / 4;
constexpr Nanos kAfter = 2 * kSecond;

// How long after the burst's end requests are again served as before, in deadlines: the end of the last slot
// of which less than 99 % were in time.
double Forgotten(const PolicyFactory& policy, const Experiment& experiment, double rate, int seeds) {
  std::vector<Tally> slots(static_cast<size_t>(kAfter / kSlot));
  for (int seed = 1; seed <= seeds; ++seed) {
    Simulation::Options options;
    options.streams = experiment.streams;
    StreamOptions& stream = options.streams.front();
    stream.rate = rate;
    stream.step_factor = 5;
    stream.step_from = kEnd - 5 * kSecond;
    stream.step_to = kEnd;
    options.until = kEnd + kAfter;
    options.seed = static_cast<uint64_t>(seed);
    options.ledger = {.from = kEnd, .to = options.until, .slot = kSlot};
    SimDevices device(experiment.models, experiment.jitter, options.seed);
    Simulation simulation(options, &device, policy(experiment.models));
    simulation.Run();
    const auto& by_slot = simulation.ledger().by_slot();
    for (size_t i = 0; i < by_slot.size(); ++i) slots[i].Add(by_slot[i]);
  }
  size_t last = 0;
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].Share(Outcome::kInTime) < 0.99) last = i + 1;
  }
  return static_cast<double>(last) * kSlot / kDeadline;
}

}  // namespace

void AddStep(const BenchOptions& options, Report& report) {
  report.Section(
      "A burst",
      "Poisson at 0.7 of G*, and for five seconds at five times that; beta 0.5 ms, D 100 ms. Forgotten is "
      "it from when on of all who arrive in 25 ms, over all seeds together, 99 % are in time.");
  const int seeds = options.quick ? 4 : 20;
  for (const int instances : {1, 4}) {
    for (const int buckets : {1, 4}) {
      Experiment experiment = BasicExperiment(options, 0.5, ToMilliseconds(kDeadline), instances, buckets);
      const double rate =
          0.7 * ServeAllRate(experiment.models.front().latency, instances, buckets, kDeadline, kMaxBatchSize);
      const std::string cell = absl::StrCat("N=", instances, ", K=", buckets);
      report.AtMost(absl::StrCat(cell, ": forgotten after"),
                    Forgotten(SaccadePolicy(), experiment, rate, seeds), 2, 2, " D");
      report.Note(
          absl::StrCat(cell, ": Triton's, delay 0"),
          absl::StrCat(
              ">= ", Rounded(Forgotten(TritonCandidate(absl::ZeroDuration()), experiment, rate, 1), 2),
              " D"));
    }
  }
}

}  // namespace saccade::server::simulation
