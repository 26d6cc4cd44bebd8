// SANet, served: "Siamese Attention Networks", with the variants of its ablations as options.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/model.h"
#include "models/target.h"

namespace saccade::models {

// As models/registry.h says of Load.
std::unique_ptr<Model> LoadSanet(const std::string& architecture, const Options& options,
                                 const std::string& weights_path, const std::vector<std::string>& labels,
                                 const Target& target = {});

}  // namespace saccade::models
