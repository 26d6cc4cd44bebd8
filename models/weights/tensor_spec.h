// A tensor that a network loads from a weights file. Does not include LibTorch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace saccade::models {

struct TensorSpec {
  std::string name;
  std::vector<int64_t> shape;
  // If empty, the tensor is required. Otherwise the module it belongs to, all of whose tensors may be missing
  // from the file (attention added to a network that was trained without): it is then the identity.
  std::string optional_module = {};
};

}  // namespace saccade::models
