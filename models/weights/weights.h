// Loads a network's tensors from a weights file.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "models/api/target.h"
#include "models/weights/tensor_spec.h"
#include "models/weights/weight_names.h"

namespace saccade::models {

// A network's tensors by name, and the target that it is loaded for.
struct TensorMap : std::map<std::string, at::Tensor> {
  using std::map<std::string, at::Tensor>::map;

  Target target;
  // Each tensor's name in the file, by the network's name; null if the tensors are not a file's.
  std::shared_ptr<const std::map<std::string, std::string>> file_names;
};

// What a safetensors file has beside NAME.weight if that is quantized, of type I8 with values from -127 to
// 127: NAME.weight_scale, F32 [outputs], and NAME.grids, F32 [4]: scale and zero point of the input and of
// the result (models/layers/int8_convolution.h). Both are loaded with it, and checked.
inline constexpr char kScaleSuffix[] = ".weight_scale";
inline constexpr char kGridsSuffix[] = ".grids";

// Removes the tensors whose names begin with `beginning` and returns them, so that their memory can be
// released once a part of the network is made from them.
TensorMap Taken(TensorMap& tensors, const std::string& beginning);

struct LoadedWeights {
  TensorMap tensors;
  // Optional modules without any tensor in the file, in the order of `expected`.
  std::vector<std::string> absent;
};

// Reads the tensors of `expected`, on the CPU, in the floating-point type in which they are stored. They
// alias the file's contents in memory, which stay while one of them exists, and must not be written to; the
// memory of a tensor is released with it. What happens to the file afterwards does not matter to them. What
// wrappers put before all names ('module.', 'model.', '_orig_mod.') is removed, and batch norms'
// num_batches_tracked are ignored. Blocks while reading. Throws a LoadError with the path, which lists every
// tensor that is missing, surplus, or of another shape or type. If a file has only some tensors of an
// optional module, the others count as missing.
LoadedWeights LoadWeights(const std::string& path, const std::vector<TensorSpec>& expected,
                          const WeightNames& names = {});

}  // namespace saccade::models
