// Packages of AOTInductor, as torch._inductor.aoti_compile_and_package writes them: machine code.
#pragma once

#include <memory>
#include <string>

#include "models/programs/program.h"

namespace saccade::models {

// As LoadProgram, for the current device. What a package gets is checked by its own code only if the
// environment has AOTI_RUNTIME_CHECK_INPUTS=1; without it, a configuration that differs from what the package
// was compiled for may read beyond a tensor's end.
std::unique_ptr<TensorProgram> LoadPackage(const std::string& path, ProgramOptions options);

}  // namespace saccade::models
