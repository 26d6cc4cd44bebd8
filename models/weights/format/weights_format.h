// Any weights file that the daemon reads, told apart by its content.
#pragma once

#include <vector>

#include "models/weights/format/tensor_entry.h"

namespace saccade::models {

// A zip archive is a state_dict, anything else must be safetensors. Throws LoadError.
std::vector<TensorEntry> ParseWeights(Bytes file);

}  // namespace saccade::models
