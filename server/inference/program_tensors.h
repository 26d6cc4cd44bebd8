// What programs take and give as the configuration names it: the outputs that a call wants, and what a model
// says of itself.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/core/tensor_call.h"
#include "server/repository/model_settings.h"

namespace saccade::server {

// INVALID_ARGUMENT, with those that there are, if an output is named that the model lacks.
absl::Status CheckProgramOutputs(const std::vector<WantedOutput>& wanted, const ModelSettings& settings);

// Of `outputs`, which are the configuration's in its order, those that are wanted; all if none is named.
// INVALID_ARGUMENT as Classify. REQUIRES: CheckProgramOutputs took `wanted`.
absl::StatusOr<std::vector<Tensor>> ChooseOutputs(std::vector<Tensor> outputs,
                                                  const std::vector<WantedOutput>& wanted,
                                                  const ModelSettings& settings);

std::vector<TensorDescription> DescribeTensors(const std::vector<TensorSpec>& specs, bool batched);

}  // namespace saccade::server
