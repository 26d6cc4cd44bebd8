// What the restoring U-Nets are, worked out from their table alone. No LibTorch here.
#pragma once

#include <string>
#include <vector>

#include "models/counts.h"
#include "models/description.h"

namespace saccade::models {

// As models/registry.h says of the functions of the same names.
Description DescribeUnet(const std::string& architecture, const Options& options,
                         const std::vector<std::string>& labels);
Counts CountUnet(const std::string& architecture, const Options& options);

}  // namespace saccade::models
