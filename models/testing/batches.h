// Makes batches for tests.
#pragma once

#include <ATen/core/Tensor.h>

#include <utility>

#include "models/api/model.h"

namespace saccade::models::testing {

// A batch of pictures that fill their bucket and were sent at that size.
inline Batch WholeBatch(const at::Tensor& pixels) {
  const Size size{pixels.dim() == 4 ? pixels.size(2) : 0, pixels.dim() == 4 ? pixels.size(3) : 0};
  const size_t count = pixels.dim() == 4 ? static_cast<size_t>(pixels.size(0)) : 0;
  return {pixels, std::vector<Placement>(count, {size, size, size})};
}

}  // namespace saccade::models::testing
