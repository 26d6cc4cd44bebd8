// Compares the tensors of a weights file with those that a network loads. Does not include LibTorch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "models/networks/network_tensors.h"

namespace saccade::models {

// A tensor of the file: its name without what stands before the network's names, and its shape.
struct FileTensor {
  std::string name;
  std::vector<int64_t> shape;
};

struct ReshapedTensor {
  std::string name;
  std::vector<int64_t> expected;
  std::vector<int64_t> got;
};

// A tensor that is missing, and one of the file that the network does not know and that has its shape.
struct RenamedTensor {
  std::string expected;
  std::string found;
  std::vector<int64_t> shape;
  // Whether the names end alike in more than their last part ("conv1.weight").
  bool similar = false;
};

// Names of the network are those that the file's writer knows (WeightNames::written).
struct WeightsFit {
  // Tensors that have the name and the shape of one of the network's.
  size_t equal = 0;
  std::vector<ReshapedTensor> reshaped = {};
  std::vector<RenamedTensor> renamed = {};
  // The others of the network, in its order, and of the file. Optional modules that the file lacks as a whole
  // are not missing.
  std::vector<TensorSpec> missing = {};
  std::vector<FileTensor> surplus = {};
  // Tensors in `equal` and `reshaped` whose name in the file is not the one that the writer of this network's
  // weights gives (torchvision's names in our own MobileNetV2).
  size_t foreign = 0;

  size_t named() const { return equal + reshaped.size(); }
  bool exact() const { return named() == equal && renamed.empty() && missing.empty() && surplus.empty(); }
  // From 0 to 1: the share of the tensors of both sides that have a counterpart on the other. A counterpart
  // of another shape, or of another name, counts less.
  double Score() const;
  // Not less than the score after the options were fitted that change shapes alone.
  double MaxScore() const;
};

// Pairs the tensors by name, and what is left by PairTensors().
WeightsFit FitTensors(const std::vector<FileTensor>& file, const NetworkTensors& network);

}  // namespace saccade::models
