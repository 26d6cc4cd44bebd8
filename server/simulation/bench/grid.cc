// All combinations of instance and bucket counts, compared to the serve-all bound.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "server/simulation/bench/candidates.h"
#include "server/simulation/bench/sections.h"
#include "server/simulation/bounds.h"
#include "server/simulation/plots.h"

namespace saccade::server::simulation {
namespace {

constexpr int kInstances[] = {1, 2, 4, 8};
constexpr int kBuckets[] = {1, 4, 8, 32};

// 100 ms, or 400 ms where one pass per bucket does not fit into 100 ms.
double DeadlineMs(int instances, int buckets) {
  const LinearLatency latency = {.beta = FromMilliseconds(kBetaMs)};
  const bool fits = ServeAllRate(latency, instances, buckets, 100 * kMillisecond, kMaxBatchSize) > 0;
  return fits ? 100 : 400;
}

}  // namespace

void AddGrid(const BenchOptions& options, Report& report) {
  report.Section("Instances and buckets",
                 "N instances, K equally loaded buckets of one area, Poisson, beta 0.5 ms, D 100 ms (400 ms "
                 "for N=1, K=32, "
                 "where nothing could serve all otherwise). Goodput at 99 %, as a share of "
                 "G* = (N/beta)(1 - alpha (1 + K/N) / D), the rate of serving all buckets in turn.");
  std::vector<std::string> rows;
  std::vector<std::string> columns;
  std::vector<std::vector<double>> cells;
  std::vector<double> all;
  std::vector<double> with_jitter;
  for (const int buckets : kBuckets) columns.push_back(absl::StrCat("K=", buckets));
  for (const int instances : kInstances) {
    rows.push_back(absl::StrCat("N=", instances));
    cells.emplace_back();
    for (const int buckets : kBuckets) {
      const double deadline_ms = DeadlineMs(instances, buckets);
      Experiment experiment = BasicExperiment(options, kBetaMs, deadline_ms, instances, buckets);
      const double bound = ServeAllRate(experiment.models.front().latency, instances, buckets,
                                        experiment.streams.front().deadline, kMaxBatchSize);
      const double ratio = Goodput(experiment, SaccadePolicy()) / bound;
      experiment.jitter = 0.1;
      with_jitter.push_back(Goodput(experiment, SaccadePolicy()) / bound);
      experiment.jitter = 0;
      const double eager = Goodput(experiment, EagerCandidate()) / bound;
      const std::string cell = absl::StrCat(rows.back(), ", ", columns[cells.back().size()], ", D ",
                                            deadline_ms, " ms, G* ", Rounded(bound, 0), " /s");
      report.AtLeast(absl::StrCat(cell, " (eager ", Rounded(eager, 3), "; 10 % jitter ",
                                  Rounded(with_jitter.back(), 3), ")"),
                     ratio, 0.85);
      cells.back().push_back(ratio);
      all.push_back(ratio);
    }
  }
  std::sort(all.begin(), all.end());
  std::sort(with_jitter.begin(), with_jitter.end());
  report.AtLeast("the median of the cells", (all[all.size() / 2 - 1] + all[all.size() / 2]) / 2, 0.92);
  report.Note("the median with 10 % jitter", Rounded(with_jitter[with_jitter.size() / 2], 3));
  WritePlot(options, report, "Goodput at 99 % as a share of G*", "scheduling-grid.svg",
            HeatTable(rows, columns, cells, 0.5, 1));
}

}  // namespace saccade::server::simulation
