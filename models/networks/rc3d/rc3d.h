// EA R-C3D, for serving.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/api/model.h"
#include "models/api/target.h"

namespace saccade::models {

// As Load() in models/api/registry.h. Attention modules without tensors in the weights are left out and
// noted.
std::unique_ptr<Model> LoadRc3d(const std::string& architecture, const Options& options,
                                const std::string& weights_path, const std::vector<std::string>& labels,
                                const Target& target = {});

}  // namespace saccade::models
