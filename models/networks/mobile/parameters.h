// Names and shapes of the mobile networks' parameters, the same as in models/reference/mobile.py.
#pragma once

#include <vector>

#include "models/networks/mobile/table.h"
#include "models/weights/tensor_spec.h"

namespace saccade::models {

std::vector<TensorSpec> MobileParameters(const MobilePlan& plan);

}  // namespace saccade::models
