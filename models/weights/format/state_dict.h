// A PyTorch state_dict as torch.save writes it: a zip archive of a pickle and its storages.
#pragma once

#include <vector>

#include "models/weights/format/tensor_entry.h"

namespace saccade::models {

// Takes the state_dict itself, or the one under 'state_dict' or 'model' in a checkpoint. Nothing is executed.
// The entries point into `file`. Throws LoadError.
std::vector<TensorEntry> ParseStateDict(Bytes file);

}  // namespace saccade::models
