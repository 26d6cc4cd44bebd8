// The classification extension: the largest values of each row of an output, as text with their labels.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/core/tensor.h"

namespace saccade::server {

// Values that one output gives, in all its rows: as many texts as a tensor may have.
inline constexpr int64_t kMaxClassified = int64_t{1} << 18;

// Returns BYTES [rows, most] of "value:index" or "value:index:label", where `max` is the smaller of
// `classes` and a row's length. The largest value comes first; among equals, the smaller index. If `batched`,
// the first extent counts rows; otherwise the whole tensor is one row and the result is [most].
// INVALID_ARGUMENT for types without a supported order, and for more than kMaxClassified texts. INTERNAL if
// the number of bytes does not match the shape.
absl::StatusOr<Tensor> Classify(const Tensor& values, int64_t classes, const std::vector<std::string>& labels,
                                bool batched);

}  // namespace saccade::server
