// AOTInductor packages, as torch._inductor.aoti_compile_and_package writes them: machine code.
#pragma once

#include <memory>
#include <string>

#include "models/programs/program.h"

namespace saccade::models {

// As LoadProgram(), for the current device. A package checks its inputs only if the environment has
// AOTI_RUNTIME_CHECK_INPUTS=1. Otherwise, if the configuration differs from the shapes that the package was
// compiled for, the package may read beyond a tensor's end.
std::unique_ptr<TensorProgram> LoadPackage(const std::string& path, ProgramOptions options);

}  // namespace saccade::models
