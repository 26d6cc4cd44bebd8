// Checks requests to ensembles and their answers against the ensemble's configuration.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "server/core/tensor_call.h"
#include "server/repository/model_settings.h"

namespace saccade::server {

// INVALID_ARGUMENT names an input or output that is unknown, duplicate, missing, or of another type or shape,
// or whose batch is too large or differs between inputs.
absl::Status CheckRequest(const TensorCall& call, const ModelSettings& ensemble);

// The number of items: the batch size, or 1 without a batch dimension. REQUIRES: CheckRequest() returned OK.
int64_t ItemsOf(const TensorCall& call, const ModelSettings& ensemble);

// INTERNAL if a step's output does not match the declaration. CheckEnsemble() cannot exclude that, because a
// model's description may have free extents, and a program may return other shapes than it says.
absl::Status CheckAnswer(const Tensor& output, const TensorSpec& declared, bool has_batch_dimension);

}  // namespace saccade::server
