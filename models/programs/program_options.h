// The parameters of Triton's PyTorch backend that have a meaning here.
#pragma once

#include "models/api/options.h"

namespace saccade::models {

// Throws a LoadError for an unknown parameter or an illegal value.
void CheckProgramOptions(const Options& options);

// INFERENCE_MODE: if false, only gradients are disabled. REQUIRES, here and below: CheckProgramOptions()
// passed.
bool InferenceMode(const Options& options);
// DISABLE_OPTIMIZED_EXECUTION: if true, TorchScript runs as written, without the executor's optimisation
// passes.
bool OptimizedExecution(const Options& options);

}  // namespace saccade::models
