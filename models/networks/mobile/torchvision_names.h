// The names of MobileNetV2's parameters in torchvision. Does not include LibTorch.
#pragma once

#include <string>

namespace saccade::models {

// Returns our name for a parameter of torchvision's MobileNetV2, or else `name` itself.
std::string NameOfTorchvision(const std::string& name);

// Returns torchvision's name for a parameter of MobileNetV2, or else `name` itself.
std::string TorchvisionName(const std::string& name);

}  // namespace saccade::models
