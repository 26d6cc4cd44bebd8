// The restoring U-Nets, for serving.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/api/model.h"
#include "models/api/target.h"

namespace saccade::models {

// As Load() in models/api/registry.h, for unet3d_sao_denoise and unet3d_sao_project.
std::unique_ptr<Model> LoadUnet(const std::string& architecture, const Options& options,
                                const std::string& weights_path, const std::vector<std::string>& labels,
                                const Target& target = {});

}  // namespace saccade::models
