// Somebody's program: named tensors in, named tensors out.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "models/programs/program.h"
#include "server/pipeline/engine.h"

namespace saccade::server {

// Whether the configuration can be served by a program. INVALID_ARGUMENT names what cannot.
absl::Status CheckProgramSettings(const ModelSettings& settings);

// `program` has SignatureOf(settings), which CheckProgramSettings took; `settings` must outlive it.
std::unique_ptr<Engine> MakeProgramEngine(std::unique_ptr<models::TensorProgram> program,
                                          const ModelSettings& settings);

}  // namespace saccade::server
