// Description and counts of DeepLabV2, computed from its table alone. Does not include LibTorch.
#pragma once

#include <string>
#include <vector>

#include "models/api/counts.h"
#include "models/api/description.h"
#include "models/networks/network_tensors.h"

namespace saccade::models {

// As Describe() and Count() in models/api/registry.h; `architecture` is deeplabv2_kao_kv or
// deeplabv2_kao_qkv.
Description DescribeDeepLab(const std::string& architecture, const Options& options,
                            const std::vector<std::string>& labels);
Counts CountDeepLab(const std::string& architecture, const Options& options);
// As TensorsOf() in models/networks/network_tensors.h.
NetworkTensors DeepLabTensors(const std::string& architecture, const Options& options);

}  // namespace saccade::models
