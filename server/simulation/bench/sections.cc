#include "server/simulation/bench/sections.h"

#include <fstream>

#include "absl/strings/str_cat.h"

namespace saccade::server::simulation {

std::vector<BenchSection> BenchSections() {
  return {{"bursts", AddBursts}, {"grid", AddGrid},     {"shapes", AddShapes}, {"workloads", AddWorkloads},
          {"load", AddLoad},     {"shares", AddShares}, {"step", AddStep},     {"scale", AddScale}};
}

Experiment BasicExperiment(const BenchOptions& options, double beta_ms, double deadline_ms, int instances,
                           int buckets) {
  Experiment experiment;
  experiment.models = {{.instances = instances,
                        .latency = {.alpha = 5 * kMillisecond, .beta = FromMilliseconds(beta_ms)},
                        .shapes = EqualAreas(buckets)}};
  experiment.streams = {
      {.rate = 1, .buckets = std::vector<double>(buckets, 1.0), .deadline = FromMilliseconds(deadline_ms)}};
  if (options.quick) {
    experiment.requests /= 10;
    experiment.at_least /= 5;
  }
  return experiment;
}

void WritePlot(const BenchOptions& options, Report& report, const std::string& title, const std::string& file,
               const std::string& svg) {
  if (options.folder.empty()) return;
  std::ofstream(absl::StrCat(options.folder, "/", file)) << svg;
  report.Plot(title, file);
}

}  // namespace saccade::server::simulation
