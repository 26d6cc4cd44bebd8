// The kernels' benchmarks. A folder's x_bench.cc lists its cases and registers the list:
//
//   void AddCases(std::vector<BenchCase>* cases) { cases->push_back(...); }
//   const BenchRegistration registered(AddCases);
//
// For every case the harness makes the inputs, checks what each candidate returns against float64, counts the
// bytes each allocates, and only then times them, taking turns; then it lets the inputs go. docs/benchmarks
// says how to read what comes out.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace saccade::kernels {

// One way to compute a case: "eager" (the paper's formulas, as one writes them in ATen operators),
// "reference" (the operator's differentiable composition), "saccade" (ours), or another peer, named for what
// it is.
struct BenchCandidate {
  std::string name;
  std::function<at::Tensor()> run;  // returns a tensor of its own, of expected's shape
};

// A case whose inputs exist: the candidates hold them.
struct BenchInputs {
  at::Tensor expected;  // float64; dropped once everything is checked
  std::vector<BenchCandidate> candidates;
};

struct BenchCase {
  // Results are named "op/variant/shape/candidate".
  std::string op;       // "sao", "ea"
  std::string variant;  // "module, bfloat16, channels-last"; short, and without '/'
  std::string shape;    // "8x256x56x56", or the level of a paper's network: "fpn1 1x256x224x320"
  // Multiply-adds as the papers count them (paper_counts.h), whatever a candidate's own algebra costs.
  double madds = 0;
  // Bytes that any implementation must read and write; a plain copy of as many is timed beside the
  // candidates. 0: no copy.
  double least_bytes = 0;
  // Bytes that the algebra needs beside inputs and result; what a candidate allocates is compared with it.
  // 0: not stated.
  double least_workspace_bytes = 0;
  // Called when the case's turn comes, and never for a case that is filtered out.
  std::function<BenchInputs()> make;
};

// A square map, as most of the papers' sizes are.
struct BenchSize {
  int64_t batch = 1;
  int64_t channels = 1;
  int64_t side = 1;

  std::vector<int64_t> shape() const { return {batch, channels, side, side}; }
  double positions() const { return static_cast<double>(side * side); }
  double elements() const { return static_cast<double>(batch * channels) * positions(); }
  std::string name() const;  // "8x256x56x56"
};

class BenchRegistration {
 public:
  explicit BenchRegistration(void (*add_cases)(std::vector<BenchCase>* cases));
};

// Every registered case, by operator.
std::vector<BenchCase> RegisteredBenchmarks();

// Relative L2 distance from float64 that a candidate may have. A peer that computes something else would be
// no peer, but its rounding is its own affair: it may be off by more than ours.
double BenchTolerance(std::string_view candidate, at::ScalarType dtype);

}  // namespace saccade::kernels
