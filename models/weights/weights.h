// From a weights file to the tensors that a network asks for.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace saccade::models {

struct TensorSpec {
  std::string name;
  std::vector<int64_t> shape;
};

using TensorMap = std::map<std::string, at::Tensor>;

// Reads exactly the tensors of `expected`, on the CPU, of the floating-point type they are stored in. They
// alias the mapped file, which lives as long as one of them, and must not be written to. A 'module.' before
// every name is taken off, and batch norms' num_batches_tracked are passed over. Blocks for the reading.
// Throws LoadError with the path; one that lists every tensor that is missing, surplus, or of another shape.
TensorMap LoadWeights(const std::string& path, const std::vector<TensorSpec>& expected);

}  // namespace saccade::models
