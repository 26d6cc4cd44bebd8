// The parameters of Triton's PyTorch backend, as far as they mean something here.
#pragma once

#include "models/options.h"

namespace saccade::models {

// Throws LoadError for one that is not known, or whose value is none of its own.
void CheckProgramOptions(const Options& options);

// INFERENCE_MODE: without it, tensors only know no gradients. REQUIRES: CheckProgramOptions passed, here and
// below.
bool InferenceMode(const Options& options);
// DISABLE_OPTIMIZED_EXECUTION: TorchScript runs as it is written, without the executor's passes over it.
bool OptimizedExecution(const Options& options);

}  // namespace saccade::models
