// A program whose code runs on a GPU.
#pragma once

#include <functional>
#include <memory>

#include "models/programs/program.h"

namespace saccade::models {

// Calls `load` with the GPU as the current one, and wraps what it gives: inputs are sent there, outputs
// fetched, on a stream of the program's own. Throws LoadError if there is no such GPU.
std::unique_ptr<TensorProgram> LoadProgramOnGpu(int gpu,
                                                const std::function<std::unique_ptr<TensorProgram>()>& load);

}  // namespace saccade::models
