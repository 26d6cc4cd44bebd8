// The scheduler's decisions per second of CPU time.
#include <ctime>

#include "absl/strings/str_cat.h"
#include "server/simulation/bench/candidates.h"
#include "server/simulation/bench/sections.h"
#include "server/simulation/bounds.h"

namespace saccade::server::simulation {
namespace {

double CpuSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

struct Pace {
  double seconds = 0;
  int64_t requests = 0;
  int64_t decisions = 0;
  double in_time = 0;
};

Pace Run(const Experiment& experiment, double load, int64_t requests) {
  double capacity = 0;
  for (const ModelOptions& model : experiment.models) {
    capacity += ServeAllRate(model.latency, model.instances, static_cast<int>(model.shapes.size()),
                             experiment.streams.front().deadline, kMaxBatchSize);
  }
  Simulation::Options options;
  options.streams = experiment.streams;
  for (StreamOptions& stream : options.streams) stream.rate *= load * capacity;
  options.until = FromSeconds(static_cast<double>(requests) / (load * capacity));
  options.ledger = {.from = {}, .to = options.until, .slot = {}};
  SimDevices device(experiment.models, 0.1, 1);
  Simulation simulation(options, &device, SaccadePolicy()(experiment.models));
  const double began = CpuSeconds();
  simulation.Run();
  return {.seconds = CpuSeconds() - began,
          .requests = simulation.requests(),
          .decisions = simulation.requests() + simulation.asked(),
          .in_time = simulation.ledger().all().Share(Outcome::kInTime)};
}

}  // namespace

void AddScale(const BenchOptions& options, Report& report) {
  report.Section(
      "Pace",
      "On one core of the machine that wrote this, the simulator's own work included. A decision is an "
      "answer to Push (taken or not) or to Next (a batch or none).");
  const int64_t few = options.quick ? 100'000 : 1'000'000;
  for (const auto& [instances, buckets] : {std::pair{1, 1}, {4, 8}}) {
    for (const double load : {0.8, 10.0}) {
      const Pace pace = Run(BasicExperiment(options, 0.5, 100, instances, buckets), load, few);
      report.AtLeast(
          absl::StrCat("N=", instances, ", K=", buckets, " at ", load, " G*: decisions a second (",
                       Rounded(static_cast<double>(pace.requests) / pace.seconds / 1e3, 0), " k requests)"),
          static_cast<double>(pace.decisions) / pace.seconds / 1e6, 1, 2, " M");
    }
  }

  // A hundred models with ten instances each.
  Experiment fleet = BasicExperiment(options, 0.5, 100, 10, 8);
  fleet.models.assign(100, fleet.models.front());
  const StreamOptions stream = fleet.streams.front();
  fleet.streams.clear();
  for (int model = 0; model < 100; ++model) {
    fleet.streams.push_back(stream);
    fleet.streams.back().model = model;
    fleet.streams.back().rate = 0.01;
    fleet.streams.back().buckets = ZipfWeights(8);
  }
  const Pace pace = Run(fleet, 0.7, 10 * few);
  report.AtMost(absl::StrCat("1,000 instances of 100 models, ", pace.requests, " requests (",
                             Rounded(100 * pace.in_time, 1), " % in time)"),
                pace.seconds, 300, 0, " s");
  report.Note("1,000 instances: decisions a second",
              absl::StrCat(Rounded(static_cast<double>(pace.decisions) / pace.seconds / 1e6, 2), " M"));
}

}  // namespace saccade::server::simulation
