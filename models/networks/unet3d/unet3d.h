// The restoring U-Nets, for serving.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/model.h"
#include "models/target.h"

namespace saccade::models {

// As Load() in models/registry.h, for unet3d_sao_denoise and unet3d_sao_project.
std::unique_ptr<Model> LoadUnet(const std::string& architecture, const Options& options,
                                const std::string& weights_path, const std::vector<std::string>& labels,
                                const Target& target = {});

}  // namespace saccade::models
