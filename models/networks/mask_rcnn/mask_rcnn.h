// EA Mask R-CNN, served: "Efficient Attention: Attention with Linear Complexities", and plain Mask R-CNN.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/model.h"
#include "models/target.h"

namespace saccade::models {

// As models/registry.h says of Load, for ea_mask_rcnn_r50, _r101 and _x101. Parameters are named as in
// torchvision; files of its older versions, which it publishes, are read too. Attention may be absent from
// the file: each such module starts as the identity, and the description notes it.
std::unique_ptr<Model> LoadMaskRcnn(const std::string& architecture, const Options& options,
                                    const std::string& weights_path, const std::vector<std::string>& labels,
                                    const Target& target = {});

}  // namespace saccade::models
