// Description and counts of a residual classifier, computed from its table alone. Does not include LibTorch.
#pragma once

#include <string>
#include <vector>

#include "models/counts.h"
#include "models/description.h"

namespace saccade::models {

// As Describe() and Count() in models/registry.h.
Description DescribeResidual(const std::string& architecture, const Options& options,
                             const std::vector<std::string>& labels);
Counts CountResidual(const std::string& architecture, const Options& options);

}  // namespace saccade::models
