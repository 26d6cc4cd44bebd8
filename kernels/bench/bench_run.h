// Runs benchmark cases one at a time, so that the inputs of only one case exist at once.
#pragma once

#include <optional>
#include <string>

#include "kernels/bench/bench.h"
#include "kernels/bench/bench_report.h"

namespace saccade::kernels {

struct BenchOptions {
  // Minimum time spent per candidate. Every case runs at least seven rounds, however long they take.
  double seconds_per_candidate = 1.0;
};

// Result of one case. `wrong` names the candidate whose result is off, and by how much; nothing was timed
// then. Empty if all results are right.
struct BenchOutcome {
  CaseResult result;
  std::string wrong;
};

BenchOutcome RunBenchmark(const BenchCase& bench, const BenchOptions& options);

}  // namespace saccade::kernels
