// Description and counts of EA Mask R-CNN, computed from its table alone. Does not include LibTorch.
#pragma once

#include <string>
#include <vector>

#include "models/api/counts.h"
#include "models/api/description.h"
#include "models/networks/network_tensors.h"

namespace saccade::models {

// As Describe() and Count() in models/api/registry.h, for ea_mask_rcnn_r50, _r101 and _x101.
Description DescribeMaskRcnn(const std::string& architecture, const Options& options,
                             const std::vector<std::string>& labels);
Counts CountMaskRcnn(const std::string& architecture, const Options& options);
// As TensorsOf() in models/networks/network_tensors.h.
NetworkTensors MaskRcnnTensors(const std::string& architecture, const Options& options);

}  // namespace saccade::models
