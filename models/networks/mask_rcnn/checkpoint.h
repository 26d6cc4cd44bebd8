// Mask R-CNN's weights files, as torchvision and its older versions write them.
#pragma once

#include <string>

#include "models/networks/mask_rcnn/table.h"
#include "models/weights/weights.h"

namespace saccade::models {

// torchvision's present name for a parameter.
std::string PresentName(const std::string& name);

// As LoadWeights. A file of the pyramid's other form is told as such.
LoadedWeights LoadMaskRcnnWeights(const std::string& path, const MaskRcnnTable& table);

}  // namespace saccade::models
