// Parses weights files of any supported format, recognised by content.
#pragma once

#include <vector>

#include "models/weights/format/tensor_entry.h"

namespace saccade::models {

// Parses a zip archive and a pickle as a state_dict, and anything else as safetensors. Throws LoadError.
std::vector<TensorEntry> ParseWeights(Bytes file);

}  // namespace saccade::models
