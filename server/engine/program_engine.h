// The engine of a user's program: named tensors in, named tensors out.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "models/programs/program.h"
#include "server/engine/engine.h"

namespace saccade::server {

// Checks that a program can be served with this configuration. INVALID_ARGUMENT names the tensor that
// prevents it.
absl::Status CheckProgramSettings(const ModelSettings& settings);

// `program` has the signature SignatureOf(settings). `settings` must outlive the engine. REQUIRES:
// CheckProgramSettings(settings) returned OK.
std::unique_ptr<Engine> MakeProgramEngine(std::unique_ptr<models::TensorProgram> program,
                                          const ModelSettings& settings);

}  // namespace saccade::server
