// The output tensors of models by task. docs/api.md has the table.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/api/description.h"
#include "server/core/items_form.h"
#include "server/core/tensor_call.h"
#include "server/inference/task_tensors.h"

namespace saccade::server {

// INVALID_ARGUMENT, listing the model's outputs, if a wanted output does not exist.
absl::Status CheckOutputs(const std::vector<WantedOutput>& wanted, const models::Description& model,
                          ItemsForm form);

// Makes the wanted outputs, or the default ones if `wanted` is empty. INVALID_ARGUMENT if results of
// different sizes would have to share a tensor. REQUIRES: CheckOutputs() accepted `wanted`, and the
// response's model still exists.
absl::StatusOr<std::vector<Tensor>> MakeOutputs(const HeldResponse& response,
                                                const std::vector<WantedOutput>& wanted, ItemsForm form);

// The names of the outputs that are returned to a request that names none.
std::vector<std::string> UnaskedOutputs(const models::Description& model, ItemsForm form);

// The labels of the indices of an output's last extent: the model's if it counts the model's classes, none
// otherwise. REQUIRES: the model has an output of that name, and outlives the result.
const std::vector<std::string>& LabelsOfIndices(const std::string& name, const models::Description& model,
                                                ItemsForm form);

std::vector<TensorDescription> DescribeOutputs(const models::Description& model, ItemsForm form);

}  // namespace saccade::server
