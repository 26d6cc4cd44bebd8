#include "server/batching/latency_model.h"

#include <algorithm>
#include <cmath>

namespace saccade::server {
namespace {

// The weight of the newest pass once there were many: the estimate follows a machine that becomes slower, or
// faster, within some ten passes.
constexpr double kMeanWeight = 0.1;
constexpr double kVarianceWeight = 1.0 / 64;
// A pass that hung tells little of the next one: it counts as so many times what was expected.
constexpr double kMostSlowdown = 4;

}  // namespace

LatencyModel::LatencyModel(int64_t max_size) : mean_(max_size + 1), seen_(max_size + 1) {}

void LatencyModel::Learn(int64_t size, double took) {
  const double expected = mean_[size];
  if (expected > 0) took = std::min(took, kMostSlowdown * expected);
  if (seen_[size] > 0) {
    const double off = std::clamp(took / expected - 1, -1.0, 1.0);
    relative_variance_ += kVarianceWeight * (off * off - relative_variance_);
    margin_ = 1 + 3 * std::sqrt(relative_variance_);
  }
  const double weight = std::max(kMeanWeight, 1.0 / ++seen_[size]);
  mean_[size] = seen_[size] == 1 ? took : expected + weight * (took - expected);
  first_ = first_ == 0 ? size : std::min(first_, size);
  last_ = std::max(last_, size);
  Interpolate(size);
  FitLine();
}

// Fills what lies between `size` and the seen sizes beside it.
void LatencyModel::Interpolate(int64_t size) {
  const auto between = [this](int64_t low, int64_t high) {
    const double step = (mean_[high] - mean_[low]) / static_cast<double>(high - low);
    for (int64_t i = low + 1; i < high; ++i) mean_[i] = mean_[low] + step * static_cast<double>(i - low);
  };
  if (size == first_) {
    // A smaller batch takes no longer; how much less is not known.
    std::fill(mean_.begin() + 1, mean_.begin() + size, mean_[size]);
  } else {
    int64_t low = size - 1;
    while (seen_[low] == 0) --low;
    between(low, size);
  }
  if (size != last_) {
    int64_t high = size + 1;
    while (seen_[high] == 0) ++high;
    between(size, high);
  }
  // Beyond the largest: as far as is known, company costs what it costs alone.
  const double step = first_ == last_
                          ? mean_[last_] / static_cast<double>(last_)
                          : std::max(0.0, mean_[last_] - mean_[first_]) / static_cast<double>(last_ - first_);
  const auto sizes = static_cast<int64_t>(mean_.size());
  for (int64_t i = last_ + 1; i < sizes; ++i) mean_[i] = mean_[last_] + step * static_cast<double>(i - last_);
}

void LatencyModel::FitLine() {
  const auto most = static_cast<int64_t>(mean_.size()) - 1;
  each_ = most == 1 ? mean_[1] : std::max(0.0, mean_[most] - mean_[1]) / static_cast<double>(most - 1);
  fixed_ = std::max(0.0, mean_[1] - each_);
}

int64_t LatencyModel::LargestWithin(double time, int64_t most) const {
  const double mean = time / margin_;
  const auto end = mean_.begin() + most + 1;
  // Larger batches take longer, but for the noise, which the last step makes up for.
  auto size = std::upper_bound(mean_.begin() + 1, end, mean) - mean_.begin() - 1;
  while (size > 0 && mean_[size] > mean) --size;
  return size;
}

}  // namespace saccade::server
