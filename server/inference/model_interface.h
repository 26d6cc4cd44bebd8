// What others have to know of a model to call it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/core/tensor.h"

namespace saccade::server {

struct ModelInterface {
  std::string name;
  int64_t version = 0;
  std::string platform = {};
  std::vector<TensorDescription> inputs = {};
  std::vector<TensorDescription> outputs = {};
  // Further forms in which inputs may come, by their names.
  std::vector<TensorDescription> other_inputs = {};
  // 0 if tensors have no batch dimension.
  int64_t max_batch_size = 0;
};

}  // namespace saccade::server
