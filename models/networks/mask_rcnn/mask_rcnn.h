// EA Mask R-CNN ("Efficient Attention: Attention with Linear Complexities") and plain Mask R-CNN, for
// serving.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/api/model.h"
#include "models/api/target.h"

namespace saccade::models {

// As Load() in models/api/registry.h, for ea_mask_rcnn_r50, _r101 and _x101. Parameters have torchvision's
// names; the names of its older versions are accepted too. The file may lack attention modules: each is then
// the identity, and the description's notes say so.
std::unique_ptr<Model> LoadMaskRcnn(const std::string& architecture, const Options& options,
                                    const std::string& weights_path, const std::vector<std::string>& labels,
                                    const Target& target = {});

}  // namespace saccade::models
