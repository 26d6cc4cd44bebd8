#include "server/batching/latency_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace saccade::server {
namespace {

// The weight of the newest pass once there were many: the estimate follows a machine that becomes slower, or
// faster, within some ten passes.
constexpr double kWeight = 0.12;
// So much of what a pass tells is taken to concern all sizes, and the rest its own. Always the same, so that
// a slow spell leaves no trace when it is over.
constexpr double kCommon = 0.75;
constexpr double kVarianceWeight = 1.0 / 64;
// Before anything is known of the jitter, what is guessed counts as so many passes.
constexpr double kGuessedDeviation = 0.03;
constexpr double kGuessedPasses = 8;
// A knot's own guess, a line between its neighbours, counts as so many passes.
constexpr double kLinePasses = 2;
// A pass that hung tells little of the next one: it counts as so many times what was expected.
constexpr double kMostSlowdown = 2.5;

}  // namespace

LatencyModel::LatencyModel(int64_t max_size)
    : mean_(max_size + 1),
      relative_variance_(kGuessedDeviation * kGuessedDeviation),
      margin_(1 + 3 * kGuessedDeviation) {
  // 1, 2, 3, 4, 6, 8, 12, 16, 24, ...
  for (int64_t size = 1; size < max_size; size *= 2) {
    knots_.push_back({.size = size});
    if (size > 1 && size * 3 / 2 < max_size) knots_.push_back({.size = size * 3 / 2});
  }
  knots_.push_back({.size = max_size});
}

void LatencyModel::Learn(int64_t size, double took) {
  if (first_ != 0 && size >= first_ && size <= last_) {
    Draw(size, took);
  } else {
    Extend(size, took);
  }
  Fill();
}

bool LatencyModel::Doubt(double time) {
  // No machine becomes faster by so much.
  constexpr double kMostSpeedup = 20;
  if (mean_[1] / doubt_ > kMostSpeedup * time) return false;
  constexpr double kMean = 0.7;
  constexpr double kVariance = 0.5;
  doubt_ *= kMean;
  scale_ *= kMean;
  relative_variance_ *= kVariance;
  margin_ = 1 + 3 * std::sqrt(relative_variance_);
  Fill();
  return true;
}

void LatencyModel::Draw(int64_t size, double took) {
  const Neighbours knots = Around(size);
  // Not mean_, which a slower smaller size keeps up: a quicker one would never be told that it is right.
  const double ratio = std::min(took * doubt_ / (knots.mean() * scale_), kMostSlowdown);
  if (doubt_ < 1) {
    // Whether the doubt was right this pass tells.
    scale_ /= std::exchange(doubt_, 1);
    Move(knots, ratio);
    return;
  }
  const double off = ratio - 1;
  const double bounded = std::clamp(off, -1.0, 1.0);
  const double variance_weight = std::max(kVarianceWeight, 1 / (kGuessedPasses + ++passes_));
  relative_variance_ += variance_weight * (bounded * bounded - relative_variance_);
  margin_ = 1 + 3 * std::sqrt(relative_variance_);
  knots.above->passes += knots.nearness;
  if (knots.above != knots.below) knots.below->passes += 1 - knots.nearness;
  const double passes = knots.above->passes * knots.nearness + knots.below->passes * (1 - knots.nearness);
  Move(knots, 1 + std::max(kWeight, 1 / (kLinePasses + passes)) * off);
}

LatencyModel::Neighbours LatencyModel::Around(int64_t size) {
  const auto above = std::lower_bound(knots_.begin(), knots_.end(), size,
                                      [](const Knot& knot, int64_t wanted) { return knot.size < wanted; });
  const auto below = above->size == size ? above : above - 1;
  const double gap = static_cast<double>(std::max<int64_t>(1, above->size - below->size));
  return {&*below, &*above, above == below ? 1 : static_cast<double>(size - below->size) / gap};
}

// Up and down alike, or the parts would drift away from each other, and other sizes with them.
void LatencyModel::Move(const Neighbours& knots, double factor) {
  scale_ *= std::pow(factor, kCommon);
  knots.above->mean *= std::pow(factor, (1 - kCommon) * knots.nearness);
  if (knots.above != knots.below) knots.below->mean *= std::pow(factor, (1 - kCommon) * (1 - knots.nearness));
}

// The first pass outside of what was seen. It tells nothing of what was doubted.
void LatencyModel::Extend(int64_t size, double took) {
  scale_ /= std::exchange(doubt_, 1);
  Fill();
  took /= scale_;
  const auto set = [this](int64_t from, int64_t to, double at_from, double slope) {
    for (Knot& knot : knots_) {
      if (knot.size >= from && knot.size <= to)
        knot.mean = at_from + slope * static_cast<double>(knot.size - from);
    }
  };
  const auto most = static_cast<int64_t>(mean_.size()) - 1;
  if (first_ == 0) {
    // As far as is known company costs what it costs alone, and fewer take as long.
    set(1, size, took, 0);
    set(size, most, took, took / static_cast<double>(size));
    first_ = last_ = size;
  } else if (size > last_) {
    const double last = mean_[last_] / scale_;
    set(last_, most, last, std::max(0.0, took - last) / static_cast<double>(size - last_));
    last_ = size;
  } else {
    const double first = mean_[first_] / scale_;
    const double slope = std::max(0.0, first - took) / static_cast<double>(first_ - size);
    if (first_ == last_) set(last_, most, first, slope);
    set(1, size, took, 0);
    set(size, first_ - 1, took, slope);
    first_ = size;
  }
}

void LatencyModel::Fill() {
  for (size_t i = 0; i + 1 < knots_.size(); ++i) {
    const Knot& low = knots_[i];
    const Knot& high = knots_[i + 1];
    const double step = (high.mean - low.mean) / static_cast<double>(high.size - low.size);
    for (int64_t size = low.size; size < high.size; ++size)
      mean_[size] = low.mean + step * static_cast<double>(size - low.size);
  }
  mean_[knots_.back().size] = knots_.back().mean;
  // Of two sizes the larger takes no less, whatever single passes made it look like.
  for (size_t size = 1; size < mean_.size(); ++size)
    mean_[size] = std::max(mean_[size] * scale_, mean_[size - 1]);
  const auto most = static_cast<int64_t>(mean_.size()) - 1;
  each_ = most == 1 ? mean_[1] : std::max(0.0, mean_[most] - mean_[1]) / static_cast<double>(most - 1);
  fixed_ = std::max(0.0, mean_[1] - each_);
}

int64_t LatencyModel::LargestWithin(double time, int64_t most) const {
  const double mean = time / margin_;
  const auto end = mean_.begin() + most + 1;
  return std::upper_bound(mean_.begin() + 1, end, mean) - mean_.begin() - 1;
}

}  // namespace saccade::server
