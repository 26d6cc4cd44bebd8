// A model whose layers are on a GPU.
#pragma once

#include <functional>
#include <memory>

#include "models/model.h"
#include "models/target.h"

namespace saccade::models {

// Calls `load` with the GPU as the current one, and wraps what it gives so that it is always run there, on a
// stream of its own: passes of one model follow each other, those of several models overlap. Throws LoadError
// if there is no such GPU, or if other models of this process need float32 to mean something else (TF32 is
// LibTorch's setting for all of them).
std::unique_ptr<Model> LoadOnGpu(const Target& target, const std::function<std::unique_ptr<Model>()>& load);

}  // namespace saccade::models
