// Goodput relative to the optimum in hindsight, for increasingly bursty arrivals.
#include "absl/strings/str_cat.h"
#include "server/simulation/bench/candidates.h"
#include "server/simulation/bench/sections.h"
#include "server/simulation/plots.h"

namespace saccade::server::simulation {
namespace {

// Measures Saccade relative to the optimum; `target` may be empty. If `lines` is not null, also measures the
// peers, jitter and 99.9 %, and adds the points to `lines`.
void AddCell(const BenchOptions& options, Report& report, double beta_ms, double deadline_ms, double cv,
             std::optional<double> target, std::vector<Line>* lines) {
  Experiment experiment = BasicExperiment(options, beta_ms, deadline_ms);
  experiment.streams.front().cv = cv;
  const std::string cell = absl::StrCat("CV ", cv, ", beta ", beta_ms, " ms, D ", deadline_ms, " ms");
  const double optimum = HindsightGoodput(experiment);
  const double ours = Goodput(experiment, SaccadePolicy());
  report.Note(absl::StrCat(cell, ": the optimum in hindsight"), absl::StrCat(Rounded(optimum, 0), " /s"));
  if (target) {
    report.AtLeast(absl::StrCat(cell, ": of the optimum"), ours / optimum, *target);
  } else {
    report.Note(absl::StrCat(cell, ": of the optimum"), Rounded(ours / optimum, 3));
  }
  // The dynamic program bounds nothing where arrivals vary more than this.
  if (cv <= 4) {
    const double online = OnlineGoodput(experiment);
    report.Note(absl::StrCat(cell, ": without foresight, of the optimum"), Rounded(online / optimum, 3));
    const std::string of_online = absl::StrCat(cell, ": of that without foresight");
    if (cv < 4) {
      report.AtLeast(of_online, ours / online, 0.97);
    } else {
      report.Note(of_online, Rounded(ours / online, 3));
    }
  }
  if (lines == nullptr) return;
  const double eager = Goodput(experiment, EagerCandidate());
  const Tuned triton = TuneTriton(experiment);
  const Tuned serving = TuneServing(experiment);
  report.Note(absl::StrCat(cell, ": eager, of the optimum"), Rounded(eager / optimum, 3));
  report.Note(absl::StrCat(cell, ": Triton's, delay ", absl::FormatDuration(triton.delay)),
              Rounded(triton.goodput / optimum, 3));
  report.Note(absl::StrCat(cell, ": TensorFlow Serving's, timeout ", absl::FormatDuration(serving.delay)),
              Rounded(serving.goodput / optimum, 3));
  const double figures[] = {ours, eager, triton.goodput, serving.goodput};
  for (size_t i = 0; i < lines->size(); ++i) (*lines)[i].points.emplace_back(cv, figures[i] / optimum);
  experiment.jitter = 0.1;
  report.Note(absl::StrCat(cell, ", 10 % jitter: of the optimum without"),
              Rounded(Goodput(experiment, SaccadePolicy()) / optimum, 3));
  experiment.jitter = 0;
  report.Note(absl::StrCat(cell, ": at 99.9 %, of the optimum"),
              Rounded(Goodput(experiment, SaccadePolicy(), 0.999) / HindsightGoodput(experiment, 0.999), 3));
}

}  // namespace

void AddBursts(const BenchOptions& options, Report& report) {
  report.Section(
      "Bursts",
      "One instance, one bucket, gamma arrivals. Goodput at 99 %: the largest rate at which 99 % are "
      "answered in time, on the same arrivals for all. The optimum knows them all beforehand (dynamic "
      "programming) and its device has no jitter. "
      "Without foresight: the policy of a dynamic program that is told the rate and the distribution of the "
      "gaps, but not the arrivals (`server/simulation/online_plan.h`). The program simplifies what it knows "
      "of "
      "the queue, so some policy may be better: at CV 4, Saccade's is.");
  std::vector<Line> lines = {
      {"Saccade", {}}, {"eager", {}}, {"Triton, tuned", {}}, {"TF Serving, tuned", {}}};
  AddCell(options, report, 0.5, 50, 1, 0.95, &lines);
  AddCell(options, report, 0.5, 50, 2, 0.90, &lines);
  AddCell(options, report, 0.5, 50, 4, 0.80, &lines);
  AddCell(options, report, 0.5, 50, 8, std::nullopt, &lines);
  for (const double deadline_ms : {25.0, 100.0}) {
    for (const double cv : {1.0, 2.0, 4.0}) {
      const double beta_ms = deadline_ms / 100;
      const double target = cv == 1 ? 0.95 : cv == 2 ? 0.90 : 0.80;
      AddCell(options, report, beta_ms, deadline_ms, cv, target, nullptr);
    }
  }
  WritePlot(options, report, "Goodput by burstiness", "scheduling-bursts.svg",
            LinePlot("coefficient of variation of the gaps", "goodput at 99 % / hindsight optimum", lines));
}

}  // namespace saccade::server::simulation
