// Checks for scores that a program gives as probabilities. Does not include LibTorch.
#pragma once

#include "models/tasks/result.h"

namespace saccade::models {

// Programs of float16 or int8 may be beyond 0 or 1 by rounding.
bool IsProbability(float value);

// The result for a picture where an output of a head without activation has a value that is no probability.
// `role` is what head.kind calls the output.
Failure NoProbability(const char* role, float value);

}  // namespace saccade::models
