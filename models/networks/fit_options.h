// Finds the options with which a network has the shapes of a weights file. Does not include LibTorch.
#pragma once

#include <string>
#include <vector>

#include "models/api/options.h"
#include "models/networks/fit.h"
#include "models/networks/known_tensors.h"

namespace saccade::models {

struct FittedOptions {
  Options options = {};
  WeightsFit fit = {};
};

// Starts from `options`, and sets `blocks` where the architecture has it and more of the file's tensors have
// a counterpart then. The option decides which names there are; the others change shapes alone.
FittedOptions FitBlocks(const std::string& architecture, const Options& options,
                        const std::vector<FileTensor>& file, KnownTensors& tensors);

// Does the same with `classes` and `width`. Options that leave no trace in names and shapes (`input_size`)
// are not found.
FittedOptions FitShapes(const std::string& architecture, const FittedOptions& fitted,
                        const std::vector<FileTensor>& file, KnownTensors& tensors);

}  // namespace saccade::models
