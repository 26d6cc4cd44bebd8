// What every model's Run checks first.
#pragma once

#include "models/description.h"
#include "models/model.h"

namespace saccade::models {

// Throws c10::Error, saying what was expected and what came, unless the pixels are float32 [B, channels, H,
// W] on the CPU with B >= 1, of the one size that the description knows if it knows one, and each has a
// placement whose bucket is H x W and whose scaled size lies within it.
void CheckBatch(const Description& description, const Batch& batch);

}  // namespace saccade::models
