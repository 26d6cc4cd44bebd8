// The mobile networks' modules as eager ATen operators, unfolded, straight from the papers: the tests'
// oracle.
#pragma once

#include <ATen/core/Tensor.h>

#include "models/networks/mobile/table.h"
#include "models/weights/weights.h"

namespace saccade::models::testing {

// Computes in the tensors' own floating-point type, which x must share.
at::Tensor EagerModule(const Block& block, const MobileOptions& options, const TensorMap& tensors,
                       const at::Tensor& x);

}  // namespace saccade::models::testing
