// What models of each task give as tensors: docs/api.md has the table.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/description.h"
#include "server/core/items_form.h"
#include "server/core/tensor_call.h"
#include "server/inference/task_tensors.h"

namespace saccade::server {

// INVALID_ARGUMENT, with those that there are, if an output is named that the model lacks.
absl::Status CheckOutputs(const std::vector<WantedOutput>& wanted, const models::Description& model,
                          ItemsForm form);

// Those that are wanted, or those that come unasked. INVALID_ARGUMENT if pictures of several sizes would have
// to share a tensor. REQUIRES: CheckOutputs took `wanted`, and the response's model still exists.
absl::StatusOr<std::vector<Tensor>> MakeOutputs(const Answered& response,
                                                const std::vector<WantedOutput>& wanted, ItemsForm form);

std::vector<TensorDescription> DescribeOutputs(const models::Description& model, ItemsForm form);

}  // namespace saccade::server
