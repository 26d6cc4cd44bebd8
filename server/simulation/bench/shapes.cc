// Inputs of several shapes, compared to servers with a single queue.
#include "absl/strings/str_cat.h"
#include "server/simulation/bench/candidates.h"
#include "server/simulation/bench/sections.h"
#include "server/simulation/bounds.h"
#include "server/simulation/plots.h"

namespace saccade::server::simulation {
namespace {

void AddCell(Report& report, const std::string& cell, const Experiment& experiment, bool with_target) {
  const double ours = Goodput(experiment, SaccadePolicy());
  const Tuned triton = TuneTriton(experiment);
  const Tuned serving = TuneServing(experiment);
  report.Note(absl::StrCat(cell, ": Saccade"), absl::StrCat(Rounded(ours, 0), " /s"));
  report.Note(absl::StrCat(cell, ": Triton's, delay ", absl::FormatDuration(triton.delay)),
              absl::StrCat(Rounded(triton.goodput, 0), " /s"));
  report.Note(absl::StrCat(cell, ": TensorFlow Serving's, timeout ", absl::FormatDuration(serving.delay)),
              absl::StrCat(Rounded(serving.goodput, 0), " /s"));
  const std::string to_triton = absl::StrCat(cell, ": Saccade to Triton's");
  if (with_target) {
    report.AtLeast(to_triton, ours / triton.goodput, 3, 2, "x");
  } else {
    report.Note(to_triton, absl::StrCat(Rounded(ours / triton.goodput, 2), "x"));
  }
  report.Note(absl::StrCat(cell, ": Saccade to TensorFlow Serving's"),
              absl::StrCat(Rounded(ours / serving.goodput, 2), "x"));
}

void PlotLoad(const BenchOptions& options, Report& report, const Experiment& experiment, double bound) {
  const Tuned triton = TuneTriton(experiment);
  const Tuned serving = TuneServing(experiment);
  const std::vector<std::pair<std::string, PolicyFactory>> candidates = {
      {"Saccade", SaccadePolicy()},
      {"eager", EagerCandidate()},
      {"Triton, tuned", TritonCandidate(triton.delay)},
      {"TF Serving, tuned", ServingCandidate(serving.delay)}};
  std::vector<Line> lines;
  for (const auto& [name, policy] : candidates) {
    Line& line = lines.emplace_back(Line{name, {}});
    for (int tenth = 1; tenth <= 20; ++tenth) {
      const double rate = bound * tenth / 10;
      line.points.emplace_back(rate, Measure(experiment, policy, rate).goodput);
    }
  }
  lines.push_back({"G*", {{0, 0}, {bound, bound}, {2 * bound, bound}}});
  WritePlot(options, report, "Goodput by offered load, four shapes", "scheduling-load.svg",
            LinePlot("offered, requests a second", "in time, requests a second", lines));
}

}  // namespace

void AddShapes(const BenchOptions& options, Report& report) {
  report.Section("Mixed shapes",
                 "One instance, Poisson, beta 0.5 ms, D 100 ms, no jitter; buckets of one area, from twice "
                 "as high as wide to "
                 "the contrary. Goodput at 99 %. Triton serves them from one queue, in which another shape "
                 "sends the batch; "
                 "TensorFlow Serving pads a mixed batch. Each of both with the delay, of eleven, that "
                 "sustains most here.");
  Experiment experiment = BasicExperiment(options, kBetaMs, kDeadlineMs, 1, 4);
  const double bound = ServeAllRate(experiment.models.front().latency, 1, 4,
                                    experiment.streams.front().deadline, kMaxBatchSize);
  AddCell(report, "4 equal shapes", experiment, true);
  PlotLoad(options, report, experiment, bound);
  for (const int buckets : {1, 4, 8, 32}) {
    Experiment zipf = BasicExperiment(options, kBetaMs, kDeadlineMs, buckets == 32 ? 4 : 1, buckets);
    zipf.streams.front().buckets = ZipfWeights(buckets);
    AddCell(report, absl::StrCat("Zipf over ", buckets, buckets == 32 ? ", 4 instances" : ""), zipf, false);
  }
}

}  // namespace saccade::server::simulation
