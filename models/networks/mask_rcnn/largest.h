// Chooses the largest numbers, of equal ones the first.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace saccade::models {

// Returns int64 [B, count]: the columns of each row's largest values, the largest first. Of equal values,
// which include the zeros of both signs, the first column comes first. `values` is float32 [B, N] with
// N >= count. Does not wait for the device.
at::Tensor FirstOfLargest(const at::Tensor& values, int64_t count);

}  // namespace saccade::models
