// Tensors of weights files, by name and shape alone, as a network's weights have them, for tests.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "models/networks/network_tensors.h"
#include "models/weights/format/tensor_entry.h"

namespace saccade::models::testing {

// The tensors in the network's order, under the names that its weights are written with.
inline std::vector<TensorEntry> FileOf(const std::string& architecture, const Options& options = {}) {
  const NetworkTensors network = TensorsOf(architecture, options);
  std::vector<TensorEntry> entries;
  for (const TensorSpec& spec : network.expected)
    entries.push_back({.name = network.names.Written(spec.name), .shape = spec.shape, .strides = {}});
  return entries;
}

// As safetensors.torch.save_file orders them.
inline void SortByName(std::vector<TensorEntry>& entries) {
  std::sort(entries.begin(), entries.end(),
            [](const TensorEntry& a, const TensorEntry& b) { return a.name < b.name; });
}

// Replaces the beginning `from` of names by `to`.
inline void Rename(std::vector<TensorEntry>& entries, const std::string& from, const std::string& to) {
  for (TensorEntry& entry : entries) {
    if (entry.name.starts_with(from)) entry.name = to + entry.name.substr(from.size());
  }
}

}  // namespace saccade::models::testing
