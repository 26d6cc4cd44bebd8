// Writes safetensors files. Does not include LibTorch.
#pragma once

#include <string>
#include <vector>

#include "models/weights/format/tensor_entry.h"

namespace saccade::models {

struct TensorToWrite {
  std::string name;
  ElementType type = ElementType::kF32;
  std::vector<int64_t> shape;
  std::string bytes;  // dense, in row-major order
};

// Writes the file beside `path` first, and gives it the name `path` when all of it is on the disk: `path` is
// never half written, and a file that was there before stays if this fails. Throws a LoadError with the path.
void WriteSafetensors(std::vector<TensorToWrite> tensors, const std::string& path);

// Returns the entry's elements, dense, in row-major order.
std::string DenseBytes(const TensorEntry& entry);

}  // namespace saccade::models
