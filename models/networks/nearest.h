// Tells which architecture has most of the names in a weights file that fits none exactly. Does not include
// LibTorch.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "models/api/options.h"
#include "models/weights/format/tensor_entry.h"

namespace saccade::models {

struct NearestNetwork {
  std::string architecture;
  // What stands before the names in the file and not in the network; empty if nothing does.
  std::string prefix = {};
  // Tensors in the file whose names the architecture has, and all tensors in the file.
  size_t matching = 0;
  size_t tensors = 0;
};

// Compares the names, without WrappersPrefix(), with those of every architecture's layers: as they are, and
// without the prefix of one or two parts ("backbone.", "student.net.") that most of them carry. `preferred`,
// unless it is empty, is compared with its options, and wins against others that match as well. `matching` is
// 0 if no name is known.
NearestNetwork Nearest(const std::vector<TensorEntry>& entries, const std::string& preferred = {},
                       const Options& options = {});

// "12 of its 14 tensors have the names of 'resnet18' without the prefix 'backbone.'; did you mean that? ...",
// with what to do. Empty if less than a third of the names match.
std::string NearestText(const NearestNetwork& nearest);

}  // namespace saccade::models
