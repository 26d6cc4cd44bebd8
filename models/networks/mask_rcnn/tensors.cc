#include "models/networks/mask_rcnn/tensors.h"

#include <ATen/ops/empty.h>

#include <cstring>

namespace saccade::models {

static_assert(sizeof(Box) == 4 * sizeof(float));

at::Tensor AsTensor(const std::vector<Box>& boxes) {
  const at::Tensor tensor = at::empty({static_cast<int64_t>(boxes.size()), 4}, at::kFloat);
  if (!boxes.empty()) std::memcpy(tensor.mutable_data_ptr(), boxes.data(), boxes.size() * sizeof(Box));
  return tensor;
}

std::vector<Box> AsBoxes(const at::Tensor& boxes) {
  std::vector<Box> result;
  const float* side = boxes.const_data_ptr<float>();
  for (int64_t i = 0; i < boxes.size(0); ++i, side += 4)
    result.push_back({side[0], side[1], side[2], side[3]});
  return result;
}

}  // namespace saccade::models
