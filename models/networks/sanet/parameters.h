// The names and shapes of SANet's parameters, the same as in models/reference/sanet.py.
#pragma once

#include <vector>

#include "models/networks/sanet/table.h"
#include "models/weights/weights.h"

namespace saccade::models {

std::vector<TensorSpec> SanetParameters(const SanetPlan& plan);

}  // namespace saccade::models
