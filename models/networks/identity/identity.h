// No network: it gives back what it gets. For measuring the daemon, and for drills.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/model.h"
#include "models/target.h"

namespace saccade::models {

// As models/registry.h says of Load. There are no weights: the file is not read.
std::unique_ptr<Model> LoadIdentity(const std::string& architecture, const Options& options,
                                    const std::string& weights_path, const std::vector<std::string>& labels,
                                    const Target& target = {});

}  // namespace saccade::models
