// Runs cases, each on its own: inputs of one case alone are alive at a time.
#pragma once

#include <optional>
#include <string>

#include "kernels/common/bench.h"
#include "kernels/common/bench_report.h"

namespace saccade::kernels {

struct BenchOptions {
  // Spent on each candidate at least, in as many rounds as fit, but never fewer than seven.
  double seconds_per_candidate = 1.0;
};

// What a case came to. `wrong` says which candidate's result is off, and how far; then nothing was timed.
struct BenchOutcome {
  CaseResult result;
  std::string wrong;
};

BenchOutcome RunBenchmark(const BenchCase& bench, const BenchOptions& options);

}  // namespace saccade::kernels
