// The benchmark, section by section; each adds its rows to the report.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "server/simulation/bench/experiment.h"
#include "server/simulation/bench/report.h"

namespace saccade::server::simulation {

struct BenchOptions {
  // A tenth of the requests: for a look, not for the record.
  bool quick = false;
  // Where plots go; empty for no plots.
  std::string folder;
};

struct BenchSection {
  std::string name;
  std::function<void(const BenchOptions&, Report&)> add;
};

void AddBursts(const BenchOptions& options, Report& report);
void AddGrid(const BenchOptions& options, Report& report);
void AddShapes(const BenchOptions& options, Report& report);
void AddWorkloads(const BenchOptions& options, Report& report);
void AddLoad(const BenchOptions& options, Report& report);
void AddShares(const BenchOptions& options, Report& report);
void AddStep(const BenchOptions& options, Report& report);
void AddScale(const BenchOptions& options, Report& report);

// All, in the report's order.
std::vector<BenchSection> BenchSections();

// Common to the sections: one model, Poisson, L(b) = 5 ms + b * beta.
Experiment BasicExperiment(const BenchOptions& options, double beta_ms, double deadline_ms, int instances = 1,
                           int buckets = 1);

void WritePlot(const BenchOptions& options, Report& report, const std::string& title, const std::string& file,
               const std::string& svg);

}  // namespace saccade::server::simulation
