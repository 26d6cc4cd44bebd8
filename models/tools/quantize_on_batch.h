// Quantizes a network on the inputs that it is then run with, for programs that time or compare networks.
#pragma once

#include <string>

#include "models/api/model.h"
#include "models/api/options.h"

namespace saccade::models {

// Writes the weights to `path` with every convolution in int8 that can be, whatever that costs. The ranges of
// the maps are those of the batch's items. Throws what Quantize() throws.
void QuantizeOnBatch(const std::string& architecture, const Options& options, const std::string& weights,
                     const Batch& batch, const std::string& path);

}  // namespace saccade::models
