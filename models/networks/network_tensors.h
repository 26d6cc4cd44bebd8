// The tensors that a network loads, and the names that a file may have for them. Does not include LibTorch.
#pragma once

#include <string>
#include <vector>

#include "models/api/options.h"
#include "models/weights/tensor_spec.h"
#include "models/weights/weight_names.h"

namespace saccade::models {

struct NetworkTensors {
  std::vector<TensorSpec> expected;
  WeightNames names = {};
};

// Returns the tensors that Load() of models/api/registry.h reads from the file. Throws a LoadError for
// an unknown architecture or option.
NetworkTensors TensorsOf(const std::string& architecture, const Options& options);

}  // namespace saccade::models
