// Checks a program's inputs and outputs against the signature.
#pragma once

#include <c10/core/ScalarType.h>

#include <vector>

#include "models/programs/program.h"

namespace saccade::models {

// Returns LibTorch's element type. REQUIRES: not kBytes.
c10::ScalarType ScalarTypeOf(DataType type);

// Returns the number of rows in the batch; -1 if the signature has no batch. Without any input it is 1.
// REQUIRES: `inputs` match the signature.
int64_t RowsOf(const Signature& signature, const std::vector<TensorProgram::Value>& inputs);

// Checks `outputs`, which are in the signature's order, and makes tensors contiguous. Throws a
// std::runtime_error that names the output, what the program returned and what the configuration says.
std::vector<TensorProgram::Value> CheckOutputs(const Signature& signature, int64_t rows,
                                               std::vector<TensorProgram::Value> outputs);

}  // namespace saccade::models
