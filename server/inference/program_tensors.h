// Inputs and outputs of programs as the configuration names them: selects the outputs that a call wants, and
// describes tensors.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/core/tensor_call.h"
#include "server/repository/model_settings.h"

namespace saccade::server {

// INVALID_ARGUMENT, listing the model's outputs, if a wanted output does not exist.
absl::Status CheckProgramOutputs(const std::vector<WantedOutput>& wanted, const ModelSettings& settings);

// Selects the wanted ones of `outputs`, which are all outputs in the configuration's order; all if `wanted`
// is empty. INVALID_ARGUMENT as Classify. REQUIRES: CheckProgramOutputs() accepted `wanted`.
absl::StatusOr<std::vector<Tensor>> ChooseOutputs(std::vector<Tensor> outputs,
                                                  const std::vector<WantedOutput>& wanted,
                                                  const ModelSettings& settings);

std::vector<TensorDescription> DescribeTensors(const std::vector<TensorSpec>& specs, bool batched);

}  // namespace saccade::server
