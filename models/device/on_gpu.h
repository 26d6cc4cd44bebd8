// Loads a model whose layers are on a GPU.
#pragma once

#include <functional>
#include <memory>

#include "models/api/model.h"
#include "models/api/target.h"

namespace saccade::models {

// Calls `load` with the GPU's stream as the current one, and wraps the resulting model so that it always runs
// on that stream: passes of one model run in order, those of several models overlap. Throws LoadError if the
// GPU does not exist, or if models or programs that are loaded need the other meaning of float32
// (Float32Use).
std::unique_ptr<Model> LoadOnGpu(const Target& target, const std::function<std::unique_ptr<Model>()>& load);

}  // namespace saccade::models
