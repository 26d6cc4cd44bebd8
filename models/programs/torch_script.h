// TorchScript programs, as torch.jit.save writes them.
#pragma once

#include <memory>
#include <string>

#include "models/programs/program.h"

namespace saccade::models {

// As LoadProgram(), for the current device. Results are those of PyTorch, bit for bit: nothing is folded or
// fused.
std::unique_ptr<TensorProgram> LoadTorchScript(const std::string& path, ProgramOptions options);

}  // namespace saccade::models
