// From a classifier's logits to the classes that a user sees.
#pragma once

#include <cstdint>
#include <vector>

#include "models/tasks/result.h"

namespace saccade::models {

struct ClassScore {
  int64_t index = 0;
  float probability = 0;  // softmax over all classes, computed in double
  float logit = 0;
};

// The k likeliest classes, likeliest first; of equals, the lower index first. Fewer when there are fewer
// classes, none when k <= 0.
std::vector<ClassScore> TopK(const Classification& result, int k);

}  // namespace saccade::models
