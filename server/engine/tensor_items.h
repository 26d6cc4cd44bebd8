// Checks a request's tensor and makes items of it, charging for its memory.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "models/api/placement.h"
#include "server/core/request.h"
#include "server/engine/item_sink.h"

namespace saccade::server {

// The placement of a tensor's items, which are not scaled or moved. REQUIRES: `shape` has the rank of the
// model's input.
models::Placement PlaceTensor(const models::ImageInput& input, const std::vector<int64_t>& shape);

// INVALID_ARGUMENT for a shape that the model does not accept. Models that keep the aspect ratio accept
// tensors of any size that fits a bucket; they are padded, never scaled.
absl::Status CheckTensor(const TensorInput& tensor, const models::ImageInput& input);

// Adds the tensor's items, which refer to the client's own bytes and are padded when they are copied into the
// batch. Charges for their padded size, and for volumes' answers, which are as large. REQUIRES: CheckTensor()
// returned OK.
absl::Status MakeTensorItems(ItemSink& sink, const TensorInput& tensor, const models::ImageInput& input);

}  // namespace saccade::server
