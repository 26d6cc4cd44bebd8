#include "models/networks/tensors.h"

#include <ATen/ops/empty.h>

#include <algorithm>

namespace saccade::models {
namespace {

template <typename T>
at::Tensor Copied(const std::vector<T>& values, at::ScalarType type) {
  const at::Tensor tensor = at::empty({static_cast<int64_t>(values.size())}, type);
  std::copy(values.begin(), values.end(), tensor.mutable_data_ptr<T>());
  return tensor;
}

}  // namespace

at::Tensor AsTensor(const std::vector<float>& values) { return Copied(values, at::kFloat); }

at::Tensor AsTensor(const std::vector<int64_t>& values) { return Copied(values, at::kLong); }

}  // namespace saccade::models
