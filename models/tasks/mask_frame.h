// Masks on a part of a grid that covers the whole picture, as prototypes give them. Does not include
// LibTorch.
#pragma once

#include <cstdint>
#include <vector>

#include "models/tasks/mask.h"
#include "models/tasks/result.h"

namespace saccade::models {

// PasteMask() for a detection with a frame: at the centre of each pixel of the box, the probability
// interpolated bilinearly between the centres of the cells. Pixels whose centre is outside the box are not in
// the region. REQUIRES: the detection's mask has frame.rows * frame.columns values, and its box is finite.
MaskRegion PasteFrame(const Detection& detection, int64_t height, int64_t width);

// Returns the detection's probabilities on a grid of `side` x `side` over its box: the mask itself if it has
// no frame, otherwise interpolated at the cells' centres. Empty if the detection has no mask.
std::vector<float> MaskOverBox(const Detection& detection, int64_t side);

}  // namespace saccade::models
