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

  // Two hundred models, each with an instance on each of eight devices.
  Experiment node = BasicExperiment(options, 0.5, 100, 8, 8);
  for (int device = 0; device < 8; ++device) node.models.front().devices.push_back(device);
  node.models.assign(200, node.models.front());
  const StreamOptions stream = node.streams.front();
  node.streams.clear();
  for (int model = 0; model < 200; ++model) {
    node.streams.push_back(stream);
    node.streams.back().model = model;
    node.streams.back().rate = 1.0 / 200;
    node.streams.back().buckets = ZipfWeights(8);
  }
  const Pace pace = Run(node, 0.7, 10 * few);
  report.AtLeast(absl::StrCat("200 models on 8 devices, 1,600 instances, ", pace.requests, " requests (",
                              Rounded(100 * pace.in_time, 1), " % in time): decisions a second"),
                 static_cast<double>(pace.decisions) / pace.seconds / 1e6, 1, 2, " M");
}

}  // namespace saccade::server::simulation
