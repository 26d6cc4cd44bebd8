// Finds the tensors of a weights file that have other names than the network's. Does not include LibTorch.
#pragma once

#include <vector>

#include "models/networks/fit.h"

namespace saccade::models {

// Pairs tensors that the network misses with tensors of the file that it does not know. Both must have the
// same shape, and names that end in the same part ("weight", "running_mean"). If all of them pair one by one
// in their order, they are paired so. Otherwise those whose names have the longest common ending come first,
// and what is left is paired in order, if there are as many on both sides. Fills fit.renamed,
// fit.missing and fit.surplus.
void PairTensors(const std::vector<TensorSpec>& missing, const std::vector<FileTensor>& surplus,
                 WeightsFit& fit);

}  // namespace saccade::models
