#include "models/networks/mask_rcnn/largest.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/where.h>

#include <tuple>

namespace saccade::models {
namespace {

// Integers in the order of the values [B, N], all different: of equal values the first has the largest.
at::Tensor Keys(const at::Tensor& values) {
  // -0.0 equals 0.0 and has other bits; the sum is 0.0 of both.
  const at::Tensor bits = values.add(0.0).view(at::kInt);
  // A negative number's bits are in the opposite order.
  const at::Tensor ordered = at::where(bits.lt(0), bits.bitwise_xor(0x7FFFFFFF), bits);
  const int64_t count = values.size(1);
  const at::Tensor later = at::arange(count - 1, -1, -1, ordered.options().dtype(at::kLong));
  return ordered.to(at::kLong).mul(int64_t{1} << 32).add(later);
}

}  // namespace

at::Tensor FirstOfLargest(const at::Tensor& values, int64_t count) {
  return std::get<1>(at::topk(Keys(values), count, 1));
}

}  // namespace saccade::models
