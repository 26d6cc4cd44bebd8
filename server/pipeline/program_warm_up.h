// The passes that a program computes before it is ready.
#pragma once

#include "absl/status/status.h"
#include "models/programs/program.h"
#include "server/pipeline/engine.h"

namespace saccade::server {

// First what the configuration's model_warmup asks for; then, where all dims are fixed, zeros: a batch of one
// and a full one, unless that takes more than 256 MiB. The error is the first pass's that failed.
absl::Status WarmUpProgram(const models::TensorProgram& program, const ModelSettings& settings,
                           const Engine::WarmUpOptions& options);

}  // namespace saccade::server
