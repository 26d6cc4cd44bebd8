#include "models/tasks/classification.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace saccade::models {
namespace {

// The probability of a class that does not depend on the other classes' logits.
double OwnProbability(LogitFunction function, double logit) {
  return function == LogitFunction::kExp ? std::exp(logit) : 1 / (1 + std::exp(-logit));
}

}  // namespace

std::vector<double> Softmax(const std::vector<float>& logits) {
  std::vector<double> values(logits.begin(), logits.end());
  if (values.empty()) return values;
  const double largest = *std::max_element(values.begin(), values.end());
  double sum = 0;
  for (double& value : values) {
    value = std::exp(value - largest);
    sum += value;
  }
  for (double& value : values) value /= sum;
  return values;
}

std::vector<double> Probabilities(const Classification& result) {
  if (result.function == LogitFunction::kSoftmax) return Softmax(result.logits);
  std::vector<double> values(result.logits.begin(), result.logits.end());
  for (double& value : values) value = OwnProbability(result.function, value);
  return values;
}

std::vector<ClassScore> TopK(const Classification& result, int k) {
  const std::vector<float>& logits = result.logits;
  const auto wanted = std::min(logits.size(), static_cast<size_t>(std::max(k, 0)));
  if (wanted == 0) return {};

  std::vector<int64_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(wanted), order.end(),
                    [&](int64_t a, int64_t b) {
                      const float left = logits[static_cast<size_t>(a)];
                      const float right = logits[static_cast<size_t>(b)];
                      return left != right ? left > right : a < b;
                    });

  const double largest = logits[static_cast<size_t>(order.front())];
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - largest);

  std::vector<ClassScore> top;
  top.reserve(wanted);
  for (size_t rank = 0; rank < wanted; ++rank) {
    const float logit = logits[static_cast<size_t>(order[rank])];
    const double probability = result.function == LogitFunction::kSoftmax
                                   ? std::exp(logit - largest) / sum
                                   : OwnProbability(result.function, logit);
    top.push_back({order[rank], static_cast<float>(probability), logit});
  }
  return top;
}

}  // namespace saccade::models
