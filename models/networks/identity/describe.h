// What the identity is. No LibTorch here.
#pragma once

#include <string>
#include <vector>

#include "models/counts.h"
#include "models/description.h"

namespace saccade::models {

// As models/registry.h says of the functions of the same names.
Description DescribeIdentity(const std::string& architecture, const Options& options,
                             const std::vector<std::string>& labels);
Counts CountIdentity(const std::string& architecture, const Options& options);

}  // namespace saccade::models
