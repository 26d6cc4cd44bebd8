// What callers need to know about a model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/core/tensor.h"

namespace saccade::server {

struct ModelInterface {
  std::string name;
  // The version that the caller named, or all that are served if it named none; ascending.
  std::vector<int64_t> versions = {};
  std::string platform = {};
  std::vector<TensorDescription> inputs = {};
  std::vector<TensorDescription> outputs = {};
  // Other accepted forms of inputs, under the inputs' names.
  std::vector<TensorDescription> other_inputs = {};
  // 0 if tensors have no batch dimension.
  int64_t max_batch_size = 0;
};

}  // namespace saccade::server
