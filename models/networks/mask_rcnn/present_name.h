// Names of Mask R-CNN's parameters in files of older versions of torchvision. Does not include LibTorch.
#pragma once

#include <string>

namespace saccade::models {

// Returns torchvision's current name for a parameter of any version.
std::string PresentName(const std::string& name);

}  // namespace saccade::models
