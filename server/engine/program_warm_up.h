// The warm-up of a program: passes that are computed before it is ready.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/programs/program.h"
#include "server/engine/engine.h"

namespace saccade::server {

// A function that computes a batch of `rows` rows of zeros and may be called repeatedly. Null if the
// configuration leaves extents to requests, or if a batch of several rows exceeds 256 MiB. Must not outlive
// `program` and `settings`.
std::function<absl::Status()> ProgramPass(const models::TensorProgram& program, const ModelSettings& settings,
                                          int64_t rows);

// Computes a row of zeros once, and returns the outputs. Nullopt if the configuration leaves extents to
// requests.
std::optional<absl::StatusOr<std::vector<Tensor>>> ComputeRowOfZeros(const models::TensorProgram& program,
                                                                     const ModelSettings& settings);

// Computes the configuration's model_warmup; then, if all extents are fixed, batches of zeros: one of size
// one and a full one, unless that exceeds 256 MiB. Returns the error of the first pass of model_warmup that
// fails. A pass over zeros that fails is logged and ends the warm-up: the program may need other values, and
// the configuration did not ask for this pass. An error is returned if the device is lost.
absl::Status WarmUpProgram(const models::TensorProgram& program, const ModelSettings& settings,
                           const Engine::WarmUpOptions& options);

}  // namespace saccade::server
