// What a network asks of a weights file, tensor by tensor. No LibTorch here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace saccade::models {

struct TensorSpec {
  std::string name;
  std::vector<int64_t> shape;
  // Empty: the tensor has to be there. Otherwise the module it belongs to, which the file may lack as a whole
  // (attention added to a network that was trained without): it then starts as the identity.
  std::string optional_module = {};
};

}  // namespace saccade::models
