// Restoring U-Nets for the tests.
#pragma once

#include <memory>
#include <string>

#include "models/model.h"
#include "models/target.h"

namespace saccade::models::testing {

// With random weights whose batch norms keep the signal's size. The weights go through a file, as they do in
// service.
std::unique_ptr<Model> MakeUnet(const std::string& architecture, const Options& options,
                                const Target& target = {});

// Random volumes of about 100 to 300, [count, 1, depth, height, width], and their placements.
Batch Volumes(int64_t count, int64_t depth, int64_t height, int64_t width);

}  // namespace saccade::models::testing
