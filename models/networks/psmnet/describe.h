// Description and counts of EA-PSMNet, computed from its table alone. Does not include LibTorch.
#pragma once

#include <string>
#include <vector>

#include "models/counts.h"
#include "models/description.h"

namespace saccade::models {

// As Describe() and Count() in models/registry.h.
Description DescribePsmnet(const std::string& architecture, const Options& options,
                           const std::vector<std::string>& labels);
Counts CountPsmnet(const std::string& architecture, const Options& options);

}  // namespace saccade::models
