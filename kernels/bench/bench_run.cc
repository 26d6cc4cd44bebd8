#include "kernels/bench/bench_run.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/ones.h>
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <sstream>

#include "kernels/bench/bench_memory.h"

namespace saccade::kernels {
namespace {

using Clock = std::chrono::steady_clock;

// Long enough for the clock's resolution, short enough that all turns of a round see the same machine speed.
constexpr double kTurnSeconds = 0.01;
constexpr int kMinRounds = 7;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Collects seconds per call, by benchmark: one entry per round.
class TimesReporter : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }

  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      times_[run.run_name.function_name].push_back(run.real_accumulated_time /
                                                   static_cast<double>(run.iterations));
    }
  }

  const std::vector<double>& times(const std::string& name) const { return times_.at(name); }

 private:
  std::map<std::string, std::vector<double>> times_;
};

std::string CheckCandidate(const BenchCandidate& candidate, const at::Tensor& expected) {
  const at::Tensor got = candidate.run();
  std::ostringstream text;
  if (got.sizes() != expected.sizes()) {
    text << candidate.name << " has shape " << got.sizes() << "; expected " << expected.sizes();
    return text.str();
  }
  const double error = at::linalg_vector_norm(got.to(at::kDouble).sub_(expected)).item<double>() /
                       at::linalg_vector_norm(expected).item<double>();
  const double allowed = BenchTolerance(candidate.name, got.scalar_type());
  if (error <= allowed) return "";
  text << candidate.name << " is off by " << error << " relative to float64; expected at most " << allowed;
  return text.str();
}

// Returns the peak allocation without the result, which `run` always has to allocate.
double PeakBeside(const BenchCandidate& candidate) {
  at::Tensor result;
  const int64_t peak = PeakAllocation([&] { result = candidate.run(); });
  return static_cast<double>(std::max<int64_t>(0, peak - static_cast<int64_t>(result.nbytes())));
}

int64_t IterationsOfATurn(const BenchCandidate& candidate) {
  double seconds = INFINITY;
  for (int i = 0; i < 3 && seconds > kTurnSeconds / 1000; ++i) {
    const auto start = Clock::now();
    candidate.run();
    seconds = std::min(seconds, SecondsSince(start));
    if (SecondsSince(start) > kTurnSeconds) break;
  }
  return std::clamp<int64_t>(std::llround(kTurnSeconds / std::max(seconds, 1e-7)), 1, 100000);
}

// One candidate's turn in a round. REQUIRES: the candidate outlives its registration.
class Turn : public benchmark::Fixture {
 public:
  explicit Turn(const BenchCandidate& candidate) : candidate_(candidate) {
    SetName(candidate.name.c_str());
    Iterations(IterationsOfATurn(candidate));
    UseRealTime();
  }

 protected:
  void BenchmarkCase(benchmark::State& state) override {
    while (state.KeepRunning()) benchmark::DoNotOptimize(candidate_.run());
  }

 private:
  const BenchCandidate& candidate_;
};

// Runs all registered benchmarks in order, once per round. Google Benchmark's own repetitions would not
// alternate between candidates.
int RunRounds(double seconds, TimesReporter* reporter) {
  int rounds = 0;
  for (const auto start = Clock::now(); rounds < kMinRounds || SecondsSince(start) < seconds; ++rounds) {
    benchmark::RunSpecifiedBenchmarks(reporter);
  }
  benchmark::ClearRegisteredBenchmarks();
  return rounds;
}

}  // namespace

BenchOutcome RunBenchmark(const BenchCase& bench, const BenchOptions& options) {
  BenchOutcome outcome{{bench.op,
                        bench.variant,
                        bench.shape,
                        bench.madds,
                        bench.min_bytes,
                        bench.min_workspace_bytes,
                        0,
                        {},
                        0},
                       ""};
  BenchInputs inputs = bench.make();
  for (const BenchCandidate& candidate : inputs.candidates) {
    outcome.wrong = CheckCandidate(candidate, inputs.expected);
    if (!outcome.wrong.empty()) return outcome;
  }
  inputs.expected = at::Tensor();

  std::vector<BenchCandidate> timed = inputs.candidates;
  if (bench.min_bytes > 0) {
    const at::Tensor from = at::ones({static_cast<int64_t>(bench.min_bytes / 2)}, at::kByte);
    const at::Tensor to = at::empty_like(from);
    timed.push_back({"copy", [=] { return to.copy_(from); }});
  }
  TimesReporter reporter;
  CaseResult& result = outcome.result;
  for (const BenchCandidate& candidate : timed) {
    benchmark::internal::RegisterBenchmarkInternal(new Turn(candidate));  // takes ownership
  }
  result.rounds = RunRounds(options.seconds_per_candidate * static_cast<double>(timed.size()), &reporter);

  const bool has_ours =
      std::any_of(timed.begin(), timed.end(), [](const auto& c) { return c.name == "saccade"; });
  for (const BenchCandidate& candidate : inputs.candidates) {
    const std::vector<double>& times = reporter.times(candidate.name);
    result.candidates.push_back({candidate.name, Median(times),
                                 has_ours ? MedianRatio(times, reporter.times("saccade")) : 0,
                                 PeakBeside(candidate)});
  }
  if (bench.min_bytes > 0) result.copy_seconds = Median(reporter.times("copy"));
  return outcome;
}

}  // namespace saccade::kernels
