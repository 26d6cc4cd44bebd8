// A program's pass over the tensors of requests: batches of rows in, each request's own rows out.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "models/programs/program.h"
#include "server/core/request.h"
#include "server/core/tensor.h"
#include "server/repository/model_settings.h"

namespace saccade::server {

// The configuration's tensors, as the program knows them.
models::Signature SignatureOf(const ModelSettings& settings);

// The outputs of each of `requests`, all named, in the configuration's order. What one request sent in one
// aligned piece is not copied, what several sent is copied once, next to each other; of the outputs, each
// request gets its rows of what the program gave, which stays as long as any of them. INTERNAL for what the
// program throws or gives against the configuration, RESOURCE_EXHAUSTED for memory. REQUIRES: CheckTensors
// was OK for each; at least one, and only one where the model has no batch.
absl::StatusOr<std::vector<std::vector<Tensor>>> RunTensors(const models::TensorProgram& program,
                                                            const ModelSettings& settings,
                                                            const std::vector<const NamedTensors*>& requests);

}  // namespace saccade::server
