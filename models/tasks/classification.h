// Computes the likeliest classes from a classifier's logits.
#pragma once

#include <cstdint>
#include <vector>

#include "models/tasks/result.h"

namespace saccade::models {

struct ClassScore {
  int64_t index = 0;
  float probability = 0;  // as Classification::independent says, computed in float64
  float logit = 0;
};

// Probabilities of classes that exclude each other, computed in float64; empty if there are no logits.
std::vector<double> Softmax(const std::vector<float>& logits);

// Returns the k likeliest classes, likeliest first; equal logits are ordered by index. Returns fewer if there
// are fewer classes, and none if k <= 0.
std::vector<ClassScore> TopK(const Classification& result, int k);

}  // namespace saccade::models
