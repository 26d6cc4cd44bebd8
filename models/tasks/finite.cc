#include "models/tasks/finite.h"

#include <ATen/ops/isfinite.h>
#include <ATen/ops/linalg_vector_norm.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

namespace saccade::models {

bool AllFinite(const at::Tensor& values) {
  const at::Tensor dense = values.is_non_overlapping_and_dense() ? values : values.contiguous();
  return AllFinite(std::span(dense.const_data_ptr<float>(), static_cast<size_t>(dense.numel())));
}

bool AllFinite(std::span<const float> values) {
  // Tests the exponent's bits, so that the loop vectorises.
  constexpr uint32_t kExponentBits = 0x7F800000;
  uint32_t bad = 0;
  for (const float value : values) {
    bad |= (std::bit_cast<uint32_t>(value) & kExponentBits) == kExponentBits ? 1U : 0U;
  }
  return bad == 0;
}

bool AllFiniteOnDevice(const at::Tensor& values) {
  // A sum of halves would overflow.
  const at::ScalarType type = values.scalar_type() == at::kHalf ? at::kFloat : values.scalar_type();
  // A sum is finite only if all its terms are. Large finite terms may also overflow.
  return std::isfinite(values.sum(type).item<float>()) || at::isfinite(values).all().item<bool>();
}

at::Tensor FiniteItems(const at::Tensor& values) {
  std::vector<int64_t> sides(static_cast<size_t>(values.dim() - 1));
  std::iota(sides.begin(), sides.end(), int64_t{1});
  // The largest absolute value, which is NaN if any value is: one reduction, which cannot overflow.
  return at::isfinite(at::linalg_vector_norm(values, std::numeric_limits<double>::infinity(), sides));
}

Failure NotFiniteInput() {
  return {.message = "the input holds a value that is not finite (NaN or infinity)", .of_input = true};
}

Failure NotFiniteOutput(const std::string& architecture, const std::string& output) {
  return {architecture + " computed " + output +
          " that is not finite, although the input is finite; its values may be too large for the network"};
}

}  // namespace saccade::models
