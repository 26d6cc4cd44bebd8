// The results of a benchmark run, and how they are written. Independent of LibTorch and Google Benchmark.
#pragma once

#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

namespace saccade::kernels {

struct CandidateResult {
  std::string name;
  double seconds = 0;     // median over the rounds
  double ratio = 0;       // median over the rounds of its time / "saccade"'s time; 0: no "saccade" candidate
  double peak_bytes = 0;  // peak allocation beside inputs and result
};

struct CaseResult {
  std::string op, variant, shape;
  double madds = 0;
  double min_bytes = 0;
  double min_workspace_bytes = 0;
  int rounds = 0;
  std::vector<CandidateResult> candidates;
  double copy_seconds = 0;  // time to copy min_bytes; 0: not timed
};

// Pairs of name and value for the report's head: instruction set, threads, versions.
using BenchContext = std::vector<std::pair<std::string, std::string>>;

// Returns the median; for an even count, the mean of the middle two. REQUIRES: values is not empty.
double Median(std::vector<double> values);

// Returns the median of a[i] / b[i] over the rounds: changes in machine speed affect both times of a round.
// REQUIRES: a and b have the same size, at least one.
double MedianRatio(const std::vector<double>& a, const std::vector<double>& b);

std::string CaseName(const CaseResult& result);

// Three significant digits with a unit: "1.21 ms", "33.9 MB" (10^6 bytes), "5.04 G".
std::string SecondsText(double seconds);
std::string BytesText(double bytes);
std::string CountText(double count);

// Prints one case as a table for a terminal.
void PrintCase(const CaseResult& result, std::ostream& out);

// Writes a section per operator with a row per candidate.
void WriteMarkdown(const BenchContext& context, const std::vector<CaseResult>& results, std::ostream& out);

// Writes Google Benchmark's JSON schema: "context", and "benchmarks" with name, real_time, time_unit and
// counters.
void WriteJson(const BenchContext& context, const std::vector<CaseResult>& results, std::ostream& out);

}  // namespace saccade::kernels
