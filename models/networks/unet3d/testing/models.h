// Restoring U-Nets for tests.
#pragma once

#include <memory>
#include <string>

#include "models/api/model.h"
#include "models/api/target.h"

namespace saccade::models::testing {

// Makes a model with random weights whose batch norms keep the signal's size. The weights are saved to a file
// and loaded, as when serving.
std::unique_ptr<Model> MakeUnet(const std::string& architecture, const Options& options,
                                const Target& target = {});

// Random volumes with values from 100 to 300, [count, 1, depth, height, width], and their placements.
Batch Volumes(int64_t count, int64_t depth, int64_t height, int64_t width);

}  // namespace saccade::models::testing
