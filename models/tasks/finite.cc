#include "models/tasks/finite.h"

#include <ATen/ops/isfinite.h>
#include <ATen/ops/stack.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <numeric>

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

std::vector<bool> FiniteItems(const std::vector<at::Tensor>& maps) {
  std::vector<at::Tensor> sums;
  for (const at::Tensor& map : maps) {
    std::vector<int64_t> sides(static_cast<size_t>(map.dim() - 1));
    std::iota(sides.begin(), sides.end(), 1);
    // A sum of halves would overflow.
    const bool half = map.scalar_type() == at::kHalf;
    sums.push_back(map.sum(sides, /*keepdim=*/false, half ? at::kFloat : map.scalar_type()).to(at::kFloat));
  }
  const at::Tensor all = at::stack(sums).to(at::kCPU);
  std::vector<bool> finite(static_cast<size_t>(all.size(1)), true);
  for (size_t map = 0; map < maps.size(); ++map) {
    const float* sum = all.const_data_ptr<float>() + static_cast<int64_t>(map) * all.size(1);
    for (size_t item = 0; item < finite.size(); ++item) {
      // A sum is finite only if all its terms are. Large finite terms may also overflow.
      if (finite[item] && !std::isfinite(sum[item]))
        finite[item] = at::isfinite(maps[map][static_cast<int64_t>(item)]).all().item<bool>();
    }
  }
  return finite;
}

Failure NotFiniteInput() {
  return {.message = "the input holds a value that is not finite (NaN or infinity)", .of_input = true};
}

Failure NotFiniteOutput(const std::string& architecture, const std::string& output) {
  return {architecture + " computed " + output +
          " that is not finite, although the input is finite; its values may be too large for the network"};
}

}  // namespace saccade::models
