// Checks that the Run() of every model makes first.
#pragma once

#include "models/api/description.h"
#include "models/api/model.h"

namespace saccade::models {

// Throws a c10::Error, with what was expected and what was given, unless the pixels are float32 [B, channels,
// H, W], or [B, channels, D, H, W] for clips and volumes, on the CPU with B >= 1. If the description has a
// fixed size, they must have it. Each item must have a placement with bucket H x W and depth D, whose scaled
// size lies within the bucket.
void CheckBatch(const Description& description, const Batch& batch);

}  // namespace saccade::models
