// The maps of explicitly modelled attention, named as in kernels/expatt. Does not include LibTorch.
#pragma once

#include <string>
#include <vector>

namespace saccade::models {

// Returns the names of all maps, the default first.
inline std::vector<std::string> ExplicitMaps() {
  return {"gaussian", "constant", "linear", "cosine", "exponential_euclidean", "exponential_manhattan"};
}

// Whether the map has sigma, a learned radius. The others depend on distances alone.
inline bool HasRadius(const std::string& map) {
  return map == "gaussian" || map == "exponential_euclidean" || map == "exponential_manhattan";
}

}  // namespace saccade::models
