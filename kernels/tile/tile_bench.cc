// The tile product against LibTorch's (MKL's). Compare with --threads 1: a tile is processed by one thread.
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/randn.h>

#include <string>
#include <tuple>

#include "kernels/bench/bench.h"
#include "kernels/tile/tile.h"

namespace saccade::kernels {
namespace {

BenchInputs Make(int64_t m, int64_t n, int64_t k) {
  const at::Tensor a = at::randn({m, k});
  const at::Tensor b = at::randn({k, n});
  BenchInputs inputs;
  inputs.expected = at::mm(a.to(at::kDouble), b.to(at::kDouble));
  const auto ours = [=] {
    at::Tensor c = at::empty({m, n});
    TileCodeFor<float>(BestCpuIsa())
        .product(m, n, k, {a.const_data_ptr<float>(), k, 1}, b.const_data_ptr<float>(), n,
                 c.mutable_data_ptr<float>(), n, false);
    return c;
  };
  inputs.candidates = {{"eager", [=] { return at::mm(a, b); }}, {"saccade", ours}};
  return inputs;
}

void AddCases(std::vector<BenchCase>* cases) {
  // Logits of 64 keys with 256 channels, the value sums of 64 keys, and logits with many channels.
  for (const auto& [m, n, k] :
       {std::tuple<int64_t, int64_t, int64_t>{64, 64, 256}, {256, 64, 64}, {64, 64, 2048}}) {
    const std::string shape = std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k);
    cases->push_back({.op = "tile",
                      .variant = "product",
                      .shape = shape,
                      .madds = static_cast<double>(m * n * k),
                      .make = [m = m, n = n, k = k] { return Make(m, n, k); }});
  }
}

const BenchRegistration registered(AddCases);

}  // namespace
}  // namespace saccade::kernels
