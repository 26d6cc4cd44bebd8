// The parameters of Triton's PyTorch backend that have a meaning here.
#pragma once

#include <string>
#include <vector>

#include "models/api/options.h"

namespace saccade::models {

// Throws a LoadError for an illegal value of a parameter that is used.
void CheckProgramOptions(const Options& options);

// A sentence for the log about each parameter that neither this server nor Triton's backend knows. Like
// Triton, the server ignores them.
std::vector<std::string> NotesOnOptions(const Options& options);

// INFERENCE_MODE: if false, only gradients are disabled. REQUIRES, here and below: CheckProgramOptions()
// passed.
bool InferenceMode(const Options& options);
// DISABLE_OPTIMIZED_EXECUTION: if true, TorchScript runs as written, without the executor's optimisation
// passes.
bool OptimizedExecution(const Options& options);

// ALLOW_TF32, which Triton's backend does not have: if true, a GPU may round the factors of float32 products
// to TF32.
bool AllowsTf32(const Options& options);

}  // namespace saccade::models
