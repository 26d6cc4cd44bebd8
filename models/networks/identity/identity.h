// A model without a network that returns its input, for benchmarking the daemon and for failure drills.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/api/model.h"
#include "models/api/target.h"

namespace saccade::models {

// As Load() in models/api/registry.h. There are no weights: the file is not read.
std::unique_ptr<Model> LoadIdentity(const std::string& architecture, const Options& options,
                                    const std::string& weights_path, const std::vector<std::string>& labels,
                                    const Target& target = {});

}  // namespace saccade::models
