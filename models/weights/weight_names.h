// How the names in a weights file are converted to a network's. Does not include LibTorch.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace saccade::models {

struct WeightNames {
  // Returns the network's name for `name` in the file, for files of older versions; null keeps all names.
  std::function<std::string(const std::string& name)> rename = nullptr;
  // Prefixes of names that the file may contain and the network does not use (a backbone's "fc.").
  std::vector<std::string> unused = {};
  // Returns the name that a message has for a tensor of the network: the one that the file's writer knows
  // (torchvision's); null keeps all names. rename(written(name)) is `name` again.
  std::function<std::string(const std::string& name)> written = nullptr;

  bool IsUnused(const std::string& name) const {
    for (const std::string& beginning : unused) {
      if (name.starts_with(beginning)) return true;
    }
    return false;
  }
  std::string Known(const std::string& name) const { return rename ? rename(name) : name; }
  std::string Written(const std::string& name) const { return written ? written(name) : name; }
};

}  // namespace saccade::models
