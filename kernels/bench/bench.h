// The kernels' benchmarks. A folder's x_bench.cc lists its cases and registers the list:
//
//   void AddCases(std::vector<BenchCase>* cases) { cases->push_back(...); }
//   const BenchRegistration registered(AddCases);
//
// For every case the harness makes the inputs, compares each candidate's result with float64, times the
// candidates in turns, measures the peak allocation of each and frees the inputs. docs/benchmarks explains
// the output.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace saccade::kernels {

// One way to compute a case: "eager" (the paper's formulas, written directly in ATen operators), "reference"
// (the operator's differentiable composition), "saccade" (this library's kernel), or another peer under its
// own name.
struct BenchCandidate {
  std::string name;
  std::function<at::Tensor()> run;  // returns a newly allocated tensor of expected's shape
};

// The inputs of a case; the candidates' closures own the input tensors.
struct BenchInputs {
  at::Tensor expected;  // float64; freed once every candidate has been checked
  std::vector<BenchCandidate> candidates;
};

struct BenchCase {
  // Results are named "op/variant/shape/candidate".
  std::string op;       // "sao", "ea"
  std::string variant;  // "module, bfloat16, channels-last"; short, and without '/'
  std::string shape;    // "8x256x56x56", or the level of a paper's network: "fpn1 1x256x224x320"
  // Multiply-adds as the papers count them (paper_counts.h), whatever algorithm a candidate uses.
  double madds = 0;
  // Minimum bytes that any implementation must read and write. A plain copy that moves as many bytes is timed
  // beside the candidates. 0: no copy.
  double min_bytes = 0;
  // Minimum bytes of workspace that the algorithm needs beside inputs and result; the report compares each
  // candidate's allocations with it. 0: not stated.
  double min_workspace_bytes = 0;
  // Makes the inputs. Called right before the case runs, and never for a case that is filtered out.
  std::function<BenchInputs()> make;
};

// A square feature map, as in most of the papers' tables.
struct BenchSize {
  int64_t batch = 1;
  int64_t channels = 1;
  int64_t side = 1;

  std::vector<int64_t> shape() const { return {batch, channels, side, side}; }
  double positions() const { return static_cast<double>(side * side); }
  double elements() const { return static_cast<double>(batch * channels) * positions(); }
  std::string name() const;  // "8x256x56x56"
};

// Registers a list of cases; define one per x_bench.cc at namespace scope.
class BenchRegistration {
 public:
  explicit BenchRegistration(void (*add_cases)(std::vector<BenchCase>* cases));
};

// Returns every registered case, sorted by operator.
std::vector<BenchCase> RegisteredBenchmarks();

// Largest relative L2 distance from float64 that a candidate may have. Peers get a larger bound than
// "saccade": it catches a peer that computes something else, not one that rounds more.
double BenchTolerance(std::string_view candidate, at::ScalarType dtype);

}  // namespace saccade::kernels
