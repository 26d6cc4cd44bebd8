// SANet's modules as eager ATen operators, unfolded, straight from the paper: the tests' oracle.
#pragma once

#include <ATen/core/Tensor.h>

#include "models/networks/sanet/table.h"
#include "models/weights/weights.h"

namespace saccade::models::testing {

// Computes in the tensors' own floating-point type, which x must share.
at::Tensor EagerModule(const Block& block, bool global_term, const TensorMap& tensors, const at::Tensor& x);

}  // namespace saccade::models::testing
