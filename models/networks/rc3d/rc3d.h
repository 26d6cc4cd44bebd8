// EA R-C3D, served.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/model.h"
#include "models/target.h"

namespace saccade::models {

// As models/registry.h says of Load. Attention that the weights lack altogether is left out, and noted.
std::unique_ptr<Model> LoadRc3d(const std::string& architecture, const Options& options,
                                const std::string& weights_path, const std::vector<std::string>& labels,
                                const Target& target = {});

}  // namespace saccade::models
