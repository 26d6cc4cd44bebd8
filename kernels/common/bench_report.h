// What a benchmark run found, and how it is written down. Knows neither LibTorch nor Google Benchmark.
#pragma once

#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

namespace saccade::kernels {

struct CandidateResult {
  std::string name;
  double seconds = 0;  // median over the rounds
  double ratio = 0;  // median over the rounds of its time to ours in the same round; 0: nothing of ours there
  double peak_bytes = 0;  // most it had allocated at once, beside inputs and result
};

struct CaseResult {
  std::string op, variant, shape;
  double madds = 0;
  double least_bytes = 0;
  double least_workspace_bytes = 0;
  int rounds = 0;
  std::vector<CandidateResult> candidates;
  double copy_seconds = 0;  // moving least_bytes; 0: not timed
};

// "what" and its value, as the report's head states it: instruction set, threads, versions.
using BenchContext = std::vector<std::pair<std::string, std::string>>;

// REQUIRES: values is not empty. Of an even number, the mean of the two in the middle.
double Median(std::vector<double> values);

// Median of a's times over b's, round by round: what moves the machine moves both of a round.
// REQUIRES: as many of one as of the other, at least one.
double MedianRatio(const std::vector<double>& a, const std::vector<double>& b);

std::string CaseName(const CaseResult& result);

// Three significant digits with a unit: "1.21 ms", "33.9 MB" (10^6 bytes), "5.04 G".
std::string SecondsText(double seconds);
std::string BytesText(double bytes);
std::string CountText(double count);

// As a table for a terminal, one case after the other.
void PrintCase(const CaseResult& result, std::ostream& out);

// A section per operator, a row per candidate.
void WriteMarkdown(const BenchContext& context, const std::vector<CaseResult>& results, std::ostream& out);

// Google Benchmark's own schema: "context", and "benchmarks" with name, real_time, time_unit and counters.
void WriteJson(const BenchContext& context, const std::vector<CaseResult>& results, std::ostream& out);

}  // namespace saccade::kernels
