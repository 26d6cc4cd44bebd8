// The sections of the benchmark. Each adds its rows to the report.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "server/simulation/bench/experiment.h"
#include "server/simulation/bench/report.h"

namespace saccade::server::simulation {

struct BenchOptions {
  // Runs a tenth of the requests; the figures are too noisy to publish.
  bool quick = false;
  // Folder for the plots; empty for no plots.
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

// All sections in the order of the report.
std::vector<BenchSection> BenchSections();

// The time per item and the deadline that most sections use, in milliseconds.
constexpr double kBetaMs = 0.5;
constexpr double kDeadlineMs = 100;

// The base of most sections: one model, Poisson arrivals, L(b) = 5 ms + b * beta.
Experiment BasicExperiment(const BenchOptions& options, double beta_ms, double deadline_ms, int instances = 1,
                           int buckets = 1);

void WritePlot(const BenchOptions& options, Report& report, const std::string& title, const std::string& file,
               const std::string& svg);

}  // namespace saccade::server::simulation
