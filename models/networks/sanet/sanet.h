// SANet, served: "Siamese Attention Networks", with the variants of its ablations as options.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/counts.h"
#include "models/description.h"
#include "models/model.h"

namespace saccade::models {

// As models/registry.h says of the functions of the same names.
Description DescribeSanet(const Options& options, const std::vector<std::string>& labels);
std::unique_ptr<Model> LoadSanet(const Options& options, const std::string& weights_path,
                                 const std::vector<std::string>& labels);
Counts CountSanet(const Options& options);

}  // namespace saccade::models
