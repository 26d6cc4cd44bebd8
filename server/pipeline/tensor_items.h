// Tensors of a request: checked, and padded where they are not yet what the network takes.
#pragma once

#include "absl/status/status.h"
#include "models/placement.h"
#include "server/core/request.h"
#include "server/pipeline/predict_call.h"

namespace saccade::server {

// INVALID_ARGUMENT for a shape that the model does not take. Tensors of any size that its buckets hold are
// taken by models that keep the ratio: they are padded, never scaled.
absl::Status CheckTensor(const TensorInput& tensor, const models::ImageInput& input);

// Whether the client's bytes are the network's input as they are. REQUIRES: CheckTensor was OK.
bool IsReady(const TensorInput& tensor, const models::ImageInput& input);

// Adds all of the tensor's items. Charges what it has to make room for, and for answers as large as their
// volumes. REQUIRES: CheckTensor was OK.
absl::Status MakeTensorItems(PredictCall& call, const TensorInput& tensor, const models::ImageInput& input);

}  // namespace saccade::server
