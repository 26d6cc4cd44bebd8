// Loads Mask R-CNN's weights files, as written by current and older versions of torchvision.
#pragma once

#include <string>

#include "models/networks/mask_rcnn/table.h"
#include "models/weights/weights.h"

namespace saccade::models {

// Like LoadWeights(). If the file has the pyramid's other form, the error says which option to set.
LoadedWeights LoadMaskRcnnWeights(const std::string& path, const MaskRcnnTable& table);

}  // namespace saccade::models
