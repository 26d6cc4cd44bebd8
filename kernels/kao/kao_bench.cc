// Compares Kronecker attention's modules with the same formulas in ATen operators.
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/softmax.h>

#include <cmath>
#include <sstream>
#include <string>
#include <vector>

#include "kernels/bench/bench.h"
#include "kernels/bench/paper_counts.h"
#include "kernels/kao/kao.h"
#include "kernels/kao/kao_impl.h"

namespace saccade::kernels {
namespace {

// As in KANet: only the values are transformed, and the input is added to the result.
struct Inputs {
  std::string kind;
  at::Tensor x, value_weight;
};

at::Tensor Averages(const at::Tensor& x) { return at::cat({x.mean(2), x.mean(3)}, 2); }

at::Tensor OuterSum(const at::Tensor& attended, const at::Tensor& x) {
  return attended.narrow(2, x.size(3), x.size(2)).unsqueeze(3) +
         attended.narrow(2, 0, x.size(3)).unsqueeze(2);
}

// The paper's equations written directly in ATen operators.
at::Tensor Eager(const Inputs& in) {
  const at::Tensor averages = Averages(in.x);
  const at::Tensor queries = in.kind == "kv" ? in.x.flatten(2) : averages;
  const at::Tensor coefficients = at::softmax(at::matmul(averages.transpose(1, 2), queries), 1);
  const at::Tensor attended = at::matmul(at::matmul(in.value_weight, averages), coefficients);
  return (in.kind == "kv" ? attended.view(in.x.sizes()) : OuterSum(attended, in.x)) + in.x;
}

// The same with LibTorch's fused softmax attention.
at::Tensor Sdpa(const Inputs& in) {
  const at::Tensor averages = Averages(in.x).transpose(1, 2).unsqueeze(1);
  const at::Tensor queries = in.kind == "kv" ? in.x.flatten(2).transpose(1, 2).unsqueeze(1) : averages;
  const at::Tensor values = at::matmul(averages, in.value_weight.t());
  const at::Tensor attended = at::scaled_dot_product_attention(queries, averages, values, {}, 0.0, false, 1.0)
                                  .squeeze(1)
                                  .transpose(1, 2);
  return (in.kind == "kv" ? attended.reshape(in.x.sizes()) : OuterSum(attended, in.x)) + in.x;
}

BenchInputs Make(const std::string& kind, const std::vector<int64_t>& shape, at::ScalarType dtype,
                 bool channels_last) {
  const int64_t channels = shape[1];
  const Inputs in = {kind,
                     at::randn(shape).to(dtype).contiguous(channels_last ? at::MemoryFormat::ChannelsLast
                                                                         : at::MemoryFormat::Contiguous),
                     (at::randn({channels, channels}) / std::sqrt(static_cast<double>(channels))).to(dtype)};
  const auto reference = [](const Inputs& of) {
    return KaoModuleReference({of.x, of.kind, {.value_weight = of.value_weight}, 1, true, {}});
  };
  BenchInputs inputs;
  inputs.expected = reference({kind, in.x.to(at::kDouble), in.value_weight.to(at::kDouble)});
  inputs.candidates = {
      {"eager", [in] { return Eager(in); }},
      {"reference", [in, reference] { return reference(in); }},
      {"saccade", [in] { return kao_module(in.x, in.kind, {.value_weight = in.value_weight}); }}};
  if (dtype == at::kFloat) inputs.candidates.push_back({"sdpa", [in] { return Sdpa(in); }});
  return inputs;
}

void AddCase(const std::string& kind, const std::vector<int64_t>& shape, at::ScalarType dtype,
             bool channels_last, std::vector<BenchCase>* cases) {
  const auto batch = static_cast<double>(shape[0]), channels = static_cast<double>(shape[1]);
  const auto rows = static_cast<double>(shape[2]), columns = static_cast<double>(shape[3]);
  const Cost cost = kind == "kv" ? KaoKvCost(rows, columns, channels) : KaoQkvCost(rows, columns, channels);
  std::ostringstream name;
  name << shape[0] << 'x' << shape[1] << 'x' << shape[2] << 'x' << shape[3];
  cases->push_back(
      {.op = "kao",
       .variant = kind + (dtype == at::kFloat ? "" : ", bfloat16") + (channels_last ? ", channels-last" : ""),
       .shape = name.str(),
       .madds = batch * cost.madds,
       // The input is read for the averages, and once more while the result is written.
       .min_bytes = 3 * batch * channels * rows * columns * (dtype == at::kFloat ? 4 : 2),
       // Averages and values.
       .min_workspace_bytes = 2 * 4 * batch * (rows + columns) * channels,
       .make = [=] { return Make(kind, shape, dtype, channels_last); }});
}

void AddCases(std::vector<BenchCase>* cases) {
  for (const std::string kind : {"kv", "qkv"}) {
    // The paper's table of operators, KANet's stages, a DeepLab head on a crop of 321 pixels, and sizes that
    // the other papers time.
    for (const auto& shape : std::vector<std::vector<int64_t>>{{8, 8, 14, 14},
                                                               {8, 8, 28, 28},
                                                               {8, 8, 56, 56},
                                                               {1, 32, 28, 28},
                                                               {1, 96, 14, 14},
                                                               {1, 160, 7, 7},
                                                               {1, 512, 41, 41},
                                                               {1, 64, 14, 14},
                                                               {1, 128, 28, 28},
                                                               {1, 256, 56, 56},
                                                               {8, 256, 56, 56}}) {
      AddCase(kind, shape, at::kFloat, false, cases);
    }
    AddCase(kind, {1, 256, 56, 56}, at::kFloat, true, cases);
    AddCase(kind, {1, 256, 56, 56}, at::kBFloat16, false, cases);
  }
}

const BenchRegistration registered(AddCases);

}  // namespace
}  // namespace saccade::kernels
