// Tensors of a request: checked, and charged for what they take.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "models/placement.h"
#include "server/core/request.h"
#include "server/pipeline/predict_call.h"

namespace saccade::server {

// Where a tensor's items belong. They are in its own coordinates already. REQUIRES: `shape` has as many
// extents as the model's input.
models::Placement PlaceTensor(const models::ImageInput& input, const std::vector<int64_t>& shape);

// INVALID_ARGUMENT for a shape that the model does not take. Tensors of any size that its buckets hold are
// taken by models that keep the ratio: they are padded, never scaled.
absl::Status CheckTensor(const TensorInput& tensor, const models::ImageInput& input);

// Adds all of the tensor's items, which are the client's own bytes: they are padded where they are copied
// into the batch. Charges for what padding makes of them, and for answers as large as their volumes.
// REQUIRES: CheckTensor was OK.
absl::Status MakeTensorItems(PredictCall& call, const TensorInput& tensor, const models::ImageInput& input);

}  // namespace saccade::server
