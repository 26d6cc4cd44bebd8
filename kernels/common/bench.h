// A small benchmark harness: candidates of one case take turns in one process, so that whatever else the
// machine does hits all of them alike; medians and ratios are what it prints.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace saccade::kernels {

struct BenchCandidate {
  std::string name;
  std::function<void()> run;
};

struct BenchCase {
  std::string name;
  // Runs before any timing; what is wrong, or empty. A case that fails its check is not timed.
  std::function<std::string()> check;
  // The first is ours: ratios are of the others' medians to its.
  std::vector<BenchCandidate> candidates;
  // What ours must move at the least, and a plain copy of the same data to compare with.
  double bytes = 0;
  std::function<void()> copy;
  double copy_bytes = 0;
};

struct BenchOptions {
  double seconds_per_case = 1.0;
  std::string filter;  // only cases whose name holds it
  std::string json;    // file to write the results to as well; empty for none
};

// Prints a table as it goes. False if a check failed or the file could not be written.
bool RunBenchmarks(const std::vector<BenchCase>& cases, const std::vector<std::string>& context,
                   const BenchOptions& options);

}  // namespace saccade::kernels
