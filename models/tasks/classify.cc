#include "models/tasks/classify.h"

#include <c10/core/InferenceMode.h>

#include "models/tasks/check_batch.h"
#include "models/tasks/finite.h"

namespace saccade::models {
std::vector<TaskResult> Classify(const Description& description, const Batch& batch,
                                 const Recorded& network) {
  const c10::InferenceMode inference;
  CheckBatch(description, batch);
  const at::Tensor& pixels = batch.pixels;
  const at::Tensor input = pixels.is_non_overlapping_and_dense() ? pixels : pixels.contiguous();
  const Recorded::Answer answer = network.Fetch(input, Extents::Of(batch.placements));
  const at::Tensor logits =
      answer.maps.front().values.reshape({input.size(0), description.classes}).contiguous();

  std::vector<TaskResult> results;
  results.reserve(static_cast<size_t>(input.size(0)));
  for (int64_t i = 0; i < input.size(0); ++i) {
    const float* row = logits.const_data_ptr<float>() + i * description.classes;
    if (!answer.finite_pixels[static_cast<size_t>(i)]) {
      results.emplace_back(NotFiniteInput());
    } else if (!AllFinite(logits[i])) {
      results.emplace_back(NotFiniteOutput(description.architecture, "a logit"));
    } else {
      results.emplace_back(Classification{{row, row + description.classes}});
    }
  }
  return results;
}

}  // namespace saccade::models
