#include "models/layers/attention_samples.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/matmul.h>

namespace saccade::models {

at::Tensor Seen(const at::Tensor& x, int64_t sample, const std::optional<at::Tensor>& valid) {
  at::Tensor seen = x[sample];
  if (valid) {
    const at::Tensor sides = (*valid)[sample].cpu();
    for (int64_t side = 0; side < sides.size(0); ++side) {
      seen = seen.narrow(1 + side, 0, sides[side].item<int64_t>());
    }
  }
  return seen.to(at::kFloat).contiguous();
}

at::Tensor Transformed(const at::Tensor& x, const std::optional<at::Tensor>& weight,
                       const std::optional<at::Tensor>& bias) {
  if (!weight) return x;
  at::Tensor y = at::matmul(weight->to(at::kFloat).flatten(1), x);
  return bias ? y.add_(bias->to(at::kFloat).unsqueeze(1)) : y;
}

std::vector<AttentionMap> AsMaps(const at::Tensor& maps, const std::function<std::string(int64_t)>& name) {
  const at::Tensor values = maps.to(at::kFloat).cpu().contiguous();
  const int64_t height = values.size(1);
  const int64_t width = values.size(2);
  std::vector<AttentionMap> made;
  for (int64_t i = 0; i < values.size(0); ++i) {
    const float* const begin = values.const_data_ptr<float>() + i * height * width;
    made.push_back({name(i), height, width, {begin, begin + height * width}});
  }
  return made;
}

std::string HeadName(int64_t head) { return "head " + std::to_string(head); }

}  // namespace saccade::models
