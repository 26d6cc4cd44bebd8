// The maps of explicitly modelled attention, as kernels/expatt names them. No LibTorch here.
#pragma once

#include <string>
#include <vector>

namespace saccade::models {

// The default first.
inline std::vector<std::string> ExplicitMaps() {
  return {"gaussian", "constant", "linear", "cosine", "exponential_euclidean", "exponential_manhattan"};
}

}  // namespace saccade::models
