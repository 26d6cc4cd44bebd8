// The inputs and outputs of a tensor program, as configured in the model repository. Does not include
// LibTorch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/api/data_type.h"

namespace saccade::models {

struct TensorSignature {
  std::string name;
  DataType type = DataType::kFp32;
  // Dimensions without the batch; -1 allows any size.
  std::vector<int64_t> dims = {};
  // For an input: whether it may be missing.
  bool optional = false;
  // For an output: whether clients get it in another shape, which requires that it has these dimensions.
  bool reshaped = false;
};

struct Signature {
  std::vector<TensorSignature> inputs;
  std::vector<TensorSignature> outputs;
  // Every tensor has an additional first dimension, the batch, whose size is the same for all. A row of the
  // outputs depends only on the same row of the inputs.
  bool batched = false;
  // Whether outputs must have their dimensions. Otherwise only the type and the batch are checked.
  bool strict_outputs = false;
  // Rows of the largest batch; 0 if unknown.
  int64_t max_batch = 0;
  // Whether the caller runs a graph that takes one row alone for the rows of a batch one after another.
  bool may_split = false;
};

// Returns "FP32 [-1,3,-1,-1]", including the batch if `batched`.
std::string DescribeTensor(const TensorSignature& tensor, bool batched);

}  // namespace saccade::models
