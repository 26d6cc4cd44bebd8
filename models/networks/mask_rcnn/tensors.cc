#include "models/networks/mask_rcnn/tensors.h"

#include <ATen/ops/empty.h>

#include <cstring>

namespace saccade::models {
namespace {

static_assert(sizeof(Box) == 4 * sizeof(float));

template <typename T>
at::Tensor Copied(const std::vector<T>& values, at::IntArrayRef shape, at::ScalarType type) {
  const at::Tensor tensor = at::empty(shape, type);
  if (!values.empty()) std::memcpy(tensor.mutable_data_ptr(), values.data(), values.size() * sizeof(T));
  return tensor;
}

int64_t Count(const auto& values) { return static_cast<int64_t>(values.size()); }

}  // namespace

at::Tensor AsTensor(const std::vector<float>& values) { return Copied(values, {Count(values)}, at::kFloat); }

at::Tensor AsTensor(const std::vector<int64_t>& values) { return Copied(values, {Count(values)}, at::kLong); }

at::Tensor AsTensor(const std::vector<Box>& boxes) { return Copied(boxes, {Count(boxes), 4}, at::kFloat); }

std::vector<Box> AsBoxes(const at::Tensor& boxes) {
  std::vector<Box> result;
  const float* side = boxes.const_data_ptr<float>();
  for (int64_t i = 0; i < boxes.size(0); ++i, side += 4)
    result.push_back({side[0], side[1], side[2], side[3]});
  return result;
}

}  // namespace saccade::models
