// Loads a program whose code runs on a GPU.
#pragma once

#include <functional>
#include <memory>

#include "models/programs/program.h"

namespace saccade::models {

// Calls `load` with the GPU's stream as the current one, and wraps the resulting program: it copies inputs to
// the GPU and outputs back, on a stream of its own. `tf32`: whether it may compute float32 as TF32. Throws
// LoadError if the GPU does not exist, or if models or programs that are loaded need the other meaning of
// float32 (Float32Use).
std::unique_ptr<TensorProgram> LoadProgramOnGpu(int gpu, bool tf32,
                                                const std::function<std::unique_ptr<TensorProgram>()>& load);

}  // namespace saccade::models
