// Reads Hugging Face's preprocessor_config.json. Does not include LibTorch.
#pragma once

#include "models/api/placement.h"
#include "models/described/json_tree.h"

namespace saccade::models {

// Returns how a picture becomes the network's input. What a missing key means depends on the processor's
// class. Throws a LoadError if the class is not known, and for a key that changes the input in a way that
// ImageInput cannot say; the message names the key and its value.
ImageInput ReadPreprocessorConfig(const JsonValue& given);

}  // namespace saccade::models
