// Description and counts of a residual classifier, computed from its table alone. Does not include LibTorch.
#pragma once

#include <string>
#include <vector>

#include "models/api/counts.h"
#include "models/api/description.h"
#include "models/networks/network_tensors.h"

namespace saccade::models {

// As Describe() and Count() in models/api/registry.h.
Description DescribeResidual(const std::string& architecture, const Options& options,
                             const std::vector<std::string>& labels);
Counts CountResidual(const std::string& architecture, const Options& options);
// As TensorsOf() in models/networks/network_tensors.h.
NetworkTensors ResidualTensors(const std::string& architecture, const Options& options);

}  // namespace saccade::models
