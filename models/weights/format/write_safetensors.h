// Writes safetensors files. Does not include LibTorch.
#pragma once

#include <map>
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
// `metadata` becomes the header's __metadata__, which is left out if it is empty.
void WriteSafetensors(std::vector<TensorToWrite> tensors, const std::string& path,
                      const std::map<std::string, std::string>& metadata = {});

// Returns the entry's elements, dense, in row-major order.
std::string DenseBytes(const TensorEntry& entry);

}  // namespace saccade::models
