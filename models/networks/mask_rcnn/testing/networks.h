// Narrow, shallow Mask R-CNNs with random weights, for tests.
#pragma once

#include <string>

#include "models/api/options.h"
#include "models/weights/weights.h"

namespace saccade::models::testing {

// Options for an eighth of the width, five blocks and four classes; `more` overrides them.
Options NarrowMaskRcnn(const Options& more = {});

// Random weights whose results do not depend on rounding errors: attention is weak, and the values by which
// boxes are selected are spread.
TensorMap MaskRcnnTensors(const std::string& architecture, const Options& options);

}  // namespace saccade::models::testing
