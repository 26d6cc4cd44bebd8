// Description and counts of the identity. Does not include LibTorch.
#pragma once

#include <string>
#include <vector>

#include "models/api/counts.h"
#include "models/api/description.h"
#include "models/networks/network_tensors.h"

namespace saccade::models {

// As Describe() and Count() in models/api/registry.h.
Description DescribeIdentity(const std::string& architecture, const Options& options,
                             const std::vector<std::string>& labels);
Counts CountIdentity(const std::string& architecture, const Options& options);
// As TensorsOf() in models/networks/network_tensors.h.
NetworkTensors IdentityTensors(const std::string& architecture, const Options& options);

}  // namespace saccade::models
