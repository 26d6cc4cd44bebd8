// The residual classifiers, for serving: ResNets with explicitly modelled attention or with global
// self-attention, and plain ResNets.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/api/model.h"
#include "models/api/target.h"

namespace saccade::models {

// As Load() in models/api/registry.h, for expatt_resnet34, 50, 101 and 152, and gsa_resnet38, 50 and 101.
// With attention=none their parameters are those of torchvision's ResNets.
std::unique_ptr<Model> LoadResidual(const std::string& architecture, const Options& options,
                                    const std::string& weights_path, const std::vector<std::string>& labels,
                                    const Target& target = {});

}  // namespace saccade::models
