#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/tensor.h>

#include <string>
#include <vector>

#include "kernels/bench/bench.h"
#include "kernels/nms/nms.h"

namespace saccade::kernels {
namespace {

constexpr double kThreshold = 0.5;

// Compares every kept box with all later boxes, with one row of ATen operators per kept box.
at::Tensor Eager(const at::Tensor& boxes, const at::Tensor& scores) {
  const at::Tensor order = std::get<1>(at::sort(scores, /*stable=*/true, 0, /*descending=*/true));
  const at::Tensor sorted = boxes.index_select(0, order);
  const auto extent = [](const at::Tensor& low, const at::Tensor& high) {
    return (high - low).clamp_min(0).prod(1);
  };
  const at::Tensor areas = extent(sorted.narrow(1, 0, 2), sorted.narrow(1, 2, 2));
  at::Tensor left = areas.ge(0);
  std::vector<int64_t> kept;
  for (int64_t i = 0; i < sorted.size(0); ++i) {
    if (!left[i].item<bool>()) continue;
    kept.push_back(i);
    const at::Tensor box = sorted.narrow(0, i, 1);
    const at::Tensor both = extent(at::maximum(sorted.narrow(1, 0, 2), box.narrow(1, 0, 2)),
                                   at::minimum(sorted.narrow(1, 2, 2), box.narrow(1, 2, 2)));
    left = left & (both / (areas + areas[i] - both) <= kThreshold);
  }
  return order.index_select(0, at::tensor(kept, at::kLong));
}

BenchInputs Make(int64_t count) {
  const at::Tensor low = at::rand({count, 2}) * 1000;
  const at::Tensor boxes = at::cat({low, low + at::rand({count, 2}) * 200 + 16}, 1);
  const at::Tensor scores = at::rand({count});
  BenchInputs inputs;
  inputs.expected = Eager(boxes, scores).to(at::kDouble);
  inputs.candidates = {{"eager", [=] { return Eager(boxes, scores); }},
                       {"saccade", [=] { return nms(boxes, scores, kThreshold); }}};
  return inputs;
}

void AddCases(std::vector<BenchCase>* cases) {
  for (const int64_t count : {1000, 5000, 20000}) {
    cases->push_back({.op = "nms", .variant = "float32", .shape = std::to_string(count), .make = [=] {
                        return Make(count);
                      }});
  }
}

const BenchRegistration registered(AddCases);

}  // namespace
}  // namespace saccade::kernels
