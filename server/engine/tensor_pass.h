// A program's pass over requests' tensors: batches their rows, and splits the outputs by request.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "models/programs/program.h"
#include "server/core/request.h"
#include "server/core/tensor.h"
#include "server/repository/model_settings.h"

namespace saccade::server {

// The configuration's tensors as the program declares them.
models::Signature SignatureOf(const ModelSettings& settings);

// Returns the named outputs of each of `requests`, in the configuration's order. A single request's input in
// one aligned piece is not copied; otherwise inputs are copied once into a batch. Each request's outputs
// refer to its rows of the program's output, which is kept alive as long as any of them. Errors of the
// program are those of PassFailure; INTERNAL if its output contradicts the configuration. REQUIRES:
// CheckTensors() returned OK for each request; at least one request, and exactly one if the model has no
// batch dimension.
absl::StatusOr<std::vector<std::vector<Tensor>>> RunTensors(const models::TensorProgram& program,
                                                            const ModelSettings& settings,
                                                            const std::vector<const NamedTensors*>& requests);

}  // namespace saccade::server
