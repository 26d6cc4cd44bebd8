// Further workloads: daily cycles, several deadlines, large bursts. Goodput at 99 % and 99.9 %, without
// targets.
#include "absl/strings/str_cat.h"
#include "server/simulation/bench/candidates.h"
#include "server/simulation/bench/sections.h"

namespace saccade::server::simulation {
namespace {

void AddCell(Report& report, const std::string& cell, const Experiment& experiment) {
  const double ours = Goodput(experiment, SaccadePolicy());
  const double ours_strict = Goodput(experiment, SaccadePolicy(), 0.999);
  const double fairness = Measure(experiment, SaccadePolicy(), ours).fairness;
  const auto row = [&](const std::string& who, double at_99, double at_999) {
    report.Note(absl::StrCat(cell, ": ", who, ", at 99 % and 99.9 %"),
                absl::StrCat(Rounded(at_99, 0), " /s, ", Rounded(at_999, 0), " /s"));
  };
  row(absl::StrCat("Saccade (Jain's index ", Rounded(fairness, 3), ")"), ours, ours_strict);
  row("eager", Goodput(experiment, EagerCandidate()), Goodput(experiment, EagerCandidate(), 0.999));
  row("Triton's, tuned", TuneTriton(experiment).goodput, TuneTriton(experiment, 0.999).goodput);
  row("TensorFlow Serving's, tuned", TuneServing(experiment).goodput, TuneServing(experiment, 0.999).goodput);
}

}  // namespace

void AddWorkloads(const BenchOptions& options, Report& report) {
  report.Section(
      "Other workloads",
      "Two instances, four shapes (Zipf), beta 0.5 ms, D 100 ms, 10 % jitter, ten clients, unless it says "
      "otherwise.");
  Experiment basic = BasicExperiment(options, 0.5, 100, 2, 4);
  basic.jitter = 0.1;
  basic.streams.front().buckets = ZipfWeights(4);
  basic.streams.front().clients = 10;
  AddCell(report, "Poisson", basic);

  Experiment even = basic;
  even.streams.front().cv = 0;
  AddCell(report, "even", even);

  Experiment day = basic;
  day.streams.front().day_factor = 3;
  day.streams.front().day_length = 4 * kSecond;
  AddCell(report, "a day of 4 s, three times up and down", day);

  Experiment deadlines = basic;
  deadlines.streams.clear();
  for (const double factor : {3.0, 5.0, 10.0}) {
    StreamOptions stream = basic.streams.front();
    stream.rate = 1.0 / 3;
    stream.deadline = FromMilliseconds(5.5 * factor);
    deadlines.streams.push_back(stream);
  }
  AddCell(report, "deadlines of 3, 5 and 10 times L(1)", deadlines);

  Experiment bursty = basic;
  bursty.streams.front().cv = 8;
  AddCell(report, "CV 8", bursty);
}

}  // namespace saccade::server::simulation
