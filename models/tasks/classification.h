// Computes the likeliest classes from a classifier's logits.
#pragma once

#include <cstdint>
#include <vector>

#include "models/tasks/result.h"

namespace saccade::models {

struct ClassScore {
  int64_t index = 0;
  float probability = 0;  // as in Probabilities()
  float logit = 0;
};

// Probabilities of classes that exclude each other, computed in float64; empty if there are no logits.
std::vector<double> Softmax(const std::vector<float>& logits);

// Probabilities of all classes, computed in float64. Those that do not come of a softmax need not sum up
// to 1.
std::vector<double> Probabilities(const Classification& result);

// Returns the k likeliest classes, likeliest first; equal logits are ordered by index. Returns fewer if there
// are fewer classes, and none if k <= 0.
std::vector<ClassScore> TopK(const Classification& result, int k);

}  // namespace saccade::models
