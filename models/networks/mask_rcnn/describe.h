// What EA Mask R-CNN is, worked out from its table alone. No LibTorch here.
#pragma once

#include <string>
#include <vector>

#include "models/counts.h"
#include "models/description.h"

namespace saccade::models {

// As models/registry.h says of the functions of the same names, for ea_mask_rcnn_r50, _r101 and _x101.
Description DescribeMaskRcnn(const std::string& architecture, const Options& options,
                             const std::vector<std::string>& labels);
Counts CountMaskRcnn(const std::string& architecture, const Options& options);

}  // namespace saccade::models
