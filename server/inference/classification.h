// The classification extension: of each row of an output its largest values, as text with their labels.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/core/tensor.h"

namespace saccade::server {

// BYTES [rows, most] of "value:index" or "value:index:label", the largest first, the smaller index first
// among equals. `most` is `classes`, or a row's length if that is less. `batched`: the first extent counts
// rows; otherwise the whole tensor is one row, and the result is [most]. INVALID_ARGUMENT for types without
// an order that we know.
absl::StatusOr<Tensor> Classify(const Tensor& values, int64_t classes, const std::vector<std::string>& labels,
                                bool batched);

}  // namespace saccade::server
