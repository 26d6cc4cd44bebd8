#include "models/tasks/finite.h"

#include <bit>
#include <cstdint>

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

Failure NotFiniteInput() { return {"the input holds a value that is not finite (NaN or infinity)"}; }

Failure NotFiniteOutput(const std::string& architecture, const std::string& output) {
  return {architecture + " computed " + output + " that is not finite for this input"};
}

}  // namespace saccade::models
