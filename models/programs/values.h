// Values that go into programs and come out of them, against the signature.
#pragma once

#include <c10/core/ScalarType.h>

#include <vector>

#include "models/programs/program.h"

namespace saccade::models {

// LibTorch's type for the elements. REQUIRES: not kBytes.
c10::ScalarType ScalarTypeOf(ValueType type);

// How many rows the batch has; -1 if the signature has no batch. REQUIRES: the values are the signature's
// inputs.
int64_t RowsOf(const Signature& signature, const std::vector<TensorProgram::Value>& inputs);

// `outputs` are in the signature's order; tensors come back contiguous. Throws std::runtime_error that names
// the output, what the program gave and what the configuration says.
std::vector<TensorProgram::Value> CheckOutputs(const Signature& signature, int64_t rows,
                                               std::vector<TensorProgram::Value> outputs);

}  // namespace saccade::models
