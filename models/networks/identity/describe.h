// Description and counts of the identity. Does not include LibTorch.
#pragma once

#include <string>
#include <vector>

#include "models/counts.h"
#include "models/description.h"

namespace saccade::models {

// As Describe() and Count() in models/registry.h.
Description DescribeIdentity(const std::string& architecture, const Options& options,
                             const std::vector<std::string>& labels);
Counts CountIdentity(const std::string& architecture, const Options& options);

}  // namespace saccade::models
