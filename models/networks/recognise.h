// Tells from the tensors of a weights file which network they belong to. Does not include LibTorch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/api/options.h"
#include "models/weights/format/tensor_entry.h"

namespace saccade::models {

struct Recognised {
  std::string architecture;
  // Options that differ from the architecture's defaults.
  Options options = {};
  int64_t classes = 0;
  // Remarks for the user about the file, one sentence each.
  std::vector<std::string> notes = {};
};

// Looks at names and shapes of the layers that tell torchvision's networks apart; whether all tensors fit is
// known when the model is loaded. Throws a LoadError that names the first tensors and the networks that are
// recognised.
Recognised Recognise(const std::vector<TensorEntry>& entries);

}  // namespace saccade::models
