// DeepLabV2 with Kronecker attention as its output layer, for serving: "Kronecker Attention Networks",
// section 4.6.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/api/model.h"
#include "models/api/target.h"

namespace saccade::models {

// As Load() in models/api/registry.h; `architecture` is deeplabv2_kao_kv or deeplabv2_kao_qkv.
std::unique_ptr<Model> LoadDeepLab(const std::string& architecture, const Options& options,
                                   const std::string& weights_path, const std::vector<std::string>& labels,
                                   const Target& target = {});

}  // namespace saccade::models
