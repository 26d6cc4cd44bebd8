// Tells which architecture the tensors of a weights file are nearest to, and what differs. Does not include
// LibTorch.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "models/api/options.h"
#include "models/networks/fit.h"
#include "models/weights/format/tensor_entry.h"

namespace saccade::models {

struct NearestNetwork {
  // Empty if no network is near.
  std::string architecture = {};
  // The options that the architecture needs (`classes`), with which `fit` was made.
  Options options = {};
  // What stands before the names in the file and not in the network; empty if nothing does.
  std::string prefix = {};
  WeightsFit fit = {};
  // Tensors in the file.
  size_t tensors = 0;
  // Other architectures that fit as well, or nearly so, sorted.
  std::vector<std::string> alike = {};

  // `architecture`, and then those that are alike.
  std::vector<std::string> Names() const {
    std::vector<std::string> names = {architecture};
    names.insert(names.end(), alike.begin(), alike.end());
    return names;
  }
};

// Compares names and shapes, without WrappersPrefix(), with those of every architecture: as they are, and
// without the prefix of one or two parts ("backbone.", "student.net.") that most of the names carry.
// `preferred`, unless it is empty, is compared with its options, and wins against others that fit as well.
// Batch norms' num_batches_tracked count for nothing.
NearestNetwork Nearest(const std::vector<TensorEntry>& entries, const std::string& preferred = {},
                       const Options& options = {});

// The same for one architecture, however far from it the file is.
NearestNetwork NearestAs(const std::string& architecture, const std::vector<TensorEntry>& entries,
                         const Options& options = {});

}  // namespace saccade::models
