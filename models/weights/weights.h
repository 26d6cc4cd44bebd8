// From a weights file to the tensors that a network asks for.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "models/target.h"
#include "models/weights/tensor_spec.h"

namespace saccade::models {

// A network's tensors by name, and what is to be made of them.
struct TensorMap : std::map<std::string, at::Tensor> {
  using std::map<std::string, at::Tensor>::map;

  Target target;
};

// How the names in a file become the network's.
struct WeightNames {
  // The network's name for what the file calls `name`, for files of older versions; null keeps every name.
  std::function<std::string(const std::string& name)> rename = nullptr;
  // Beginnings of names that the file may hold and the network has no use for ("fc." of a backbone).
  std::vector<std::string> unused = {};
};

// The tensors whose names begin so, taken out: once a part of a network is made of them, they need not stay.
TensorMap Taken(TensorMap& tensors, const std::string& beginning);

struct LoadedWeights {
  TensorMap tensors;
  // Optional modules of which the file holds nothing, in the order of `expected`.
  std::vector<std::string> absent;
};

// Reads exactly the tensors of `expected`, on the CPU, of the floating-point type they are stored in. They
// alias the mapped file, which lives as long as one of them, and must not be written to; the memory behind a
// tensor goes with it. A 'module.' before
// every name is taken off, and batch norms' num_batches_tracked are passed over. Blocks for the reading.
// Throws LoadError with the path; one that lists every tensor that is missing, surplus, or of another shape.
// An optional module of which the file holds a part only is missing the rest.
LoadedWeights LoadWeights(const std::string& path, const std::vector<TensorSpec>& expected,
                          const WeightNames& names = {});

}  // namespace saccade::models
