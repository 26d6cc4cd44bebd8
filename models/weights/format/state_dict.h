// PyTorch state_dicts as torch.save writes them: since PyTorch 1.6 a zip archive of a pickle and its
// storages, before it a stream of pickles and then the storages.
#pragma once

#include <vector>

#include "models/weights/format/tensor_entry.h"

namespace saccade::models {

// Reads the state_dict itself, or the one under 'state_dict' or 'model' in a checkpoint. Executes nothing.
// The entries point into `file`. Throws LoadError.
std::vector<TensorEntry> ParseStateDict(Bytes file);

}  // namespace saccade::models
