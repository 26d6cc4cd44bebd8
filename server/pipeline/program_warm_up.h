// The passes that a program computes before it is ready.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "models/programs/program.h"
#include "server/pipeline/engine.h"

namespace saccade::server {

// A batch of so many rows of zeros, to be computed again and again. Null where dims are left to requests, or
// the batch would be beyond 256 MiB. Not to outlive the program and its settings.
std::function<absl::Status()> ProgramPass(const models::TensorProgram& program, const ModelSettings& settings,
                                          int64_t rows);

// First what the configuration's model_warmup asks for; then, where all dims are fixed, zeros: a batch of one
// and a full one, unless that takes more than 256 MiB. The error is the first pass's that failed.
absl::Status WarmUpProgram(const models::TensorProgram& program, const ModelSettings& settings,
                           const Engine::WarmUpOptions& options);

}  // namespace saccade::server
