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

// Returns the only architecture that loads all of these tensors, with the number of classes, the blocks
// or the width that they have. Throws a LoadError that names the nearest ones and what differs: tensors that
// are renamed, missing, surplus or of another shape.
Recognised Recognise(const std::vector<TensorEntry>& entries);

// Describes the file as weights of this architecture, which the user has named. The notes say what
// does not fit, as the options may have to be set.
Recognised RecogniseAs(const std::string& architecture, const std::vector<TensorEntry>& entries);

}  // namespace saccade::models
