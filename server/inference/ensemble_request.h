// What an ensemble's clients send and get, held against what its configuration declares.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "server/core/tensor_call.h"
#include "server/repository/model_settings.h"

namespace saccade::server {

// INVALID_ARGUMENT names the input or output: unknown, twice, missing, of another type or shape, a batch that
// is too large or differs from input to input.
absl::Status CheckRequest(const TensorCall& call, const ModelSettings& ensemble);

// Items in it: the batch, or 1 without a batch dimension. REQUIRES: CheckRequest took it.
int64_t ItemsOf(const TensorCall& call, const ModelSettings& ensemble);

// INTERNAL if what a step gave for this output is not what is declared: the models' descriptions left open
// what the configuration does not.
absl::Status CheckAnswer(const Tensor& output, const TensorSpec& declared, bool has_batch_dimension);

}  // namespace saccade::server
