#include "models/tasks/classify.h"

#include <c10/core/InferenceMode.h>

#include <bit>
#include <cstdint>

namespace saccade::models {
namespace {

// By the exponent's bits, so that the loop vectorises.
bool AllFinite(const float* values, int64_t count) {
  constexpr uint32_t kExponent = 0x7F800000;
  uint32_t bad = 0;
  for (int64_t i = 0; i < count; ++i)
    bad |= (std::bit_cast<uint32_t>(values[i]) & kExponent) == kExponent ? 1U : 0U;
  return bad == 0;
}

void Check(const Description& description, const at::Tensor& batch) {
  const ImageInput& input = description.input;
  TORCH_CHECK(batch.device().is_cpu() && batch.scalar_type() == at::kFloat, description.architecture,
              ": expected a float32 batch on the CPU, got ", batch.scalar_type(), " on ", batch.device());
  TORCH_CHECK(batch.dim() == 4 && batch.size(0) >= 1 && batch.size(1) == 3 && batch.size(2) == input.height &&
                  batch.size(3) == input.width,
              description.architecture, ": expected a batch of shape [B, 3, ", input.height, ", ",
              input.width, "] with B >= 1, got ", batch.sizes());
}

}  // namespace

std::vector<TaskResult> Classify(const Description& description, const at::Tensor& batch,
                                 const std::function<at::Tensor(const at::Tensor&)>& network) {
  const c10::InferenceMode inference;
  Check(description, batch);
  const at::Tensor input = batch.is_non_overlapping_and_dense() ? batch : batch.contiguous();
  const at::Tensor logits = network(input).reshape({input.size(0), description.classes}).contiguous();

  std::vector<TaskResult> results;
  results.reserve(static_cast<size_t>(input.size(0)));
  for (int64_t i = 0; i < input.size(0); ++i) {
    const at::Tensor picture = input[i].contiguous();
    const float* row = logits.const_data_ptr<float>() + i * description.classes;
    if (!AllFinite(picture.const_data_ptr<float>(), picture.numel())) {
      results.emplace_back(Failure{"the picture holds a value that is not finite (NaN or infinity)"});
    } else if (!AllFinite(row, description.classes)) {
      results.emplace_back(
          Failure{description.architecture + " gave a logit that is not finite for this picture"});
    } else {
      results.emplace_back(Classification{{row, row + description.classes}});
    }
  }
  return results;
}

}  // namespace saccade::models
