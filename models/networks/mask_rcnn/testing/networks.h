// Mask R-CNNs for tests: narrow, shallow, with random weights.
#pragma once

#include <string>

#include "models/options.h"
#include "models/weights/weights.h"

namespace saccade::models::testing {

// An eighth as wide, five blocks, four classes; `more` overrides.
Options NarrowMaskRcnn(const Options& more = {});

// A network that is not trained answers at random, but must not hang on rounding: attention is weak, and what
// chooses between boxes is spread.
TensorMap MaskRcnnTensors(const std::string& architecture, const Options& options);

}  // namespace saccade::models::testing
