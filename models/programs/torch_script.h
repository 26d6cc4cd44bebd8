// TorchScript, as torch.jit.save writes it.
#pragma once

#include <memory>
#include <string>

#include "models/programs/program.h"

namespace saccade::models {

// As LoadProgram, for the current device. Computed as PyTorch itself computes it, bit for bit: nothing is
// folded or fused.
std::unique_ptr<TensorProgram> LoadTorchScript(const std::string& path, ProgramOptions options);

}  // namespace saccade::models
