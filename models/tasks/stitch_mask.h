// Puts the masks of an object's parts together. Does not include LibTorch.
#pragma once

#include <cstdint>
#include <vector>

#include "models/tasks/result.h"

namespace saccade::models {

// Returns a grid of mask_side x mask_side over the box of `whole`: at the centre of each cell the largest
// probability of any part there, interpolated bilinearly between the centres of the part's own cells. Empty
// if a part has neither a mask of mask_side x mask_side values nor one with a frame.
std::vector<float> StitchMask(const std::vector<const Detection*>& parts, const Detection& whole,
                              int64_t mask_side);

}  // namespace saccade::models
