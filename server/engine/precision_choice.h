// Chooses the precision in which a network is computed.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/api/target.h"
#include "server/core/clock.h"
#include "server/engine/engine.h"
#include "server/repository/model_settings.h"

namespace saccade::server {

// The precisions below float32 that a processor has instructions for.
struct NativePrecisions {
  bool bfloat16 = false;
  bool int8 = false;
};

// Those of this machine's processor.
NativePrecisions NativePrecisionsHere();

struct PrecisionChoice {
  models::Precision precision = models::Precision::kFloat32;
  // Why, as a part of a sentence, with what was measured.
  std::string reason;
  // What "auto" could not do because the processor lacks instructions, a sentence each. They hold for every
  // model on the machine, so one line of the log says each for all of them.
  std::vector<std::string> lacks = {};
};

// The precisions that ChoosePrecision() compares by the answers to the model's samples, float32 first. Empty
// if it compares none: if the option `precision` is not "auto", there are no samples, or the processor has
// instructions for no other precision.
std::vector<models::Precision> ComparedPrecisions(const ModelSettings& settings, const EngineOptions& options,
                                                  const NativePrecisions& native);

// PrecisionChoice::lacks of the model. Empty unless its option `precision` is "auto".
std::vector<std::string> LackedPrecisions(const ModelSettings& settings, const EngineOptions& options,
                                          const NativePrecisions& native);

// Whether a precision whose passes take `share` of float32's time is chosen rather than one that changes less
// and takes `other_share`.
bool IsClearlyFaster(double share, double other_share);

// FAILED_PRECONDITION if the version's quantized weights say that they were made from other weights than the
// version has. Blocks while it reads the head of the quantized file, and while
// `sum_of_file` reads the other one.
absl::Status CheckQuantizedFrom(const ModelVersion& version, const FileSummer& sum_of_file = FileSum);

// Returns the option `precision`, unless it is "auto". Then compares float32 with bfloat16 and, on the CPU
// and if the version has quantized weights, with int8, as far as the processor has instructions for them. A
// precision qualifies if the answers to the model's samples change by at most settings.max_precision_loss in
// the mean (models/tasks/disagreement.h) and its passes are clearly faster than float32's. Returns the one
// that qualifies, and of two bfloat16 unless int8 is clearly faster; float32 if none does, if there are no
// samples, or if one cannot be read. Quantized weights that the processor has no int8 instructions for are
// ignored. Holds the weights twice while it compares, and frees both. Blocks, and computes on this thread.
// Errors are those of loading the weights.
absl::StatusOr<PrecisionChoice> ChoosePrecision(const ModelSettings& settings, const EngineOptions& options,
                                                const NativePrecisions& native, Clock* clock);

}  // namespace saccade::server
