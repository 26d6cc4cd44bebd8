// The mobile networks' modules as unfolded eager ATen operators, as in the papers: the reference for tests.
#pragma once

#include <ATen/core/Tensor.h>

#include "models/networks/mobile/table.h"
#include "models/weights/weights.h"

namespace saccade::models::testing {

// Computes in the tensors' floating-point type, which x must have too.
at::Tensor EagerModule(const Block& block, const MobileOptions& options, const TensorMap& tensors,
                       const at::Tensor& x);

}  // namespace saccade::models::testing
