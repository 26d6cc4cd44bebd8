// Says in messages which network a weights file is nearest to, and what to do. Does not include LibTorch.
#pragma once

#include <string>
#include <vector>

#include "models/networks/nearest.h"

namespace saccade::models {

// "119 of its 122 tensors have the names of 'resnet18' behind the prefix 'backbone.'; did you mean that
// network? ...", with what to do. Empty if no network is near.
std::string NearestText(const NearestNetwork& nearest);

// Sentences about what is renamed, missing, of another shape and surplus: "'fc.weight' is missing;
// 'head.weight' has its shape: rename it?"
std::vector<std::string> DifferenceTexts(const WeightsFit& fit);
// Those of the renamed alone, for messages that list the other differences already.
std::vector<std::string> RenamedTexts(const WeightsFit& fit);

// "'a', 'b' or 'c'".
std::string Alternatives(const std::vector<std::string>& names);

}  // namespace saccade::models
