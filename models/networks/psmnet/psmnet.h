// EA-PSMNet, for serving.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/api/model.h"
#include "models/api/target.h"

namespace saccade::models {

// As Load() in models/api/registry.h. If the weights have no tensors for attention, it is left out and noted.
std::unique_ptr<Model> LoadPsmnet(const std::string& architecture, const Options& options,
                                  const std::string& weights_path, const std::vector<std::string>& labels,
                                  const Target& target = {});

}  // namespace saccade::models
